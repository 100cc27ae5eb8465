"""Read a whole model, and report all that is wrong at once. Nothing is allocated, compiled or written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import NoReturn

from opendml.budget import meter
from opendml.errors import Unsupported, located
from opendml.folders import within
from opendml.frontends.dxdispatch import images
from opendml.frontends.dxdispatch.bindings import parse_bindings, resource_at
from opendml.frontends.dxdispatch.descs import bind_points, flags_value, parse_operator_desc
from opendml.frontends.dxdispatch.foreign import (
    ForeignDispatchable,
    OnnxDispatchable,
    SerializedDispatchable,
    read_onnx,
)
from opendml.frontends.dxdispatch.model import (
    Command,
    Dispatch,
    DispatchModel,
    FileNotReadError,
    Folders,
    NamedDispatchable,
    Print,
    Resource,
    Resources,
    WriteFile,
)
from opendml.frontends.dxdispatch.resources import parse_resources, source_path
from opendml.frontends.dxdispatch.values import element_count
from opendml.frontends.onnx.sizes import NO_SIZES, Sizes
from opendml.frontends.serialized.graph import read_graph
from opendml.json_files import text as json_text
from opendml.json_files.node import UINT32_MAX, Failures, JsonNode, quoted, suggestion
from opendml.spec.enums import ExecutionFlags, TensorDataType

_ROOT_FIELDS = ("$schema", "resources", "dispatchables", "commands")
_OPERATOR_FIELDS = ("type", "desc", "dmlCompileType", "executionFlags", "bindings")
_COMPILE_TYPES = ("DmlCompileOp", "DmlCompileGraph")
_ONNX_SIZES = ("freeDimensionNameOverrides", "freeDimensionDenotationOverrides")
_FOREIGN_FIELDS = {
    "onnx": ("type", "sourcePath", "executionFlags", *_ONNX_SIZES),
    "dmlserializedgraph": ("type", "sourcePath", "executionFlags"),
}
_COMMAND_FIELDS = {
    "dispatch": ("type", "dispatchable", "bindings", "threadGroupCount"),
    "print": ("type", "resource", "verbose"),
    "writefile": ("type", "resource", "targetPath", "dimensions"),
}


def load(
    path: Path,
    output_directory: Path | None = None,
    input_directory: Path | None = None,
    sizes: Sizes = NO_SIZES,
    *,
    allow_any_path: bool = False,
) -> DispatchModel:
    """Read the model in a JSON file, with all that it needs to run.

    The file may be hostile: it reads files of one folder and writes files of another one alone, whatever
    links and `..` it has.

    Args:
        path: the model; "-" is standard input.
        output_directory: where target files are written; None for the current directory.
        input_directory: where source files are; None for the model's folder.
        sizes: of its ONNX models, which go before what it says itself.
        allow_any_path: let the model read and write all files that the process may, as DxDispatch does.
            Source files that are not in their folder are then sought in the current directory.

    Raises:
        InvalidArgument: its failures name the JSON path, what was expected and what was given. A file that is
            not where it must be is such a failure.
        Unsupported: a dispatchable is no DirectML operator, or a library is missing.
    """
    folders = Folders.of(path, output_directory, input_directory, any_path=allow_any_path)
    return parse_model(read(path), folders, sizes)


def read(path: Path) -> JsonNode:
    """Return the JSON value in the file `path` ("-" is standard input).

    Raises InvalidArgument when there is none.
    """
    return JsonNode(json_text.read(path))


def parse_operators(
    root: JsonNode, folders: Folders | None = None, sizes: Sizes = NO_SIZES
) -> Mapping[str, NamedDispatchable]:
    """Return the dispatchables of the model that `root` describes.

    The model is checked as by `load`, but for the files that it names: they need not be there, and what only
    they tell is not checked. With `folders`, those dispatchables too that are files of their own, with sizes
    of ONNX models as for `load`.
    """
    return _parse(root, None, folders, sizes).dispatchables


def parse_model(root: JsonNode, folders: Folders, sizes: Sizes = NO_SIZES) -> DispatchModel:
    """Return the model that `root` describes; see `load`."""
    return _parse(root, folders, folders, sizes)


def _parse(root: JsonNode, folders: Folders | None, foreign: Folders | None, sizes: Sizes) -> DispatchModel:
    """Parse a model, and collect its mistakes.

    Args:
        root: its JSON.
        folders: where files of resources are; None: these resources are left out.
        foreign: where files of dispatchables are; None: these dispatchables are left out.
        sizes: of its ONNX models.
    """
    root.members(_ROOT_FIELDS)
    with Failures() as failures:
        with failures.collected():
            resources = parse_resources(root.member("resources"), folders)
        with failures.collected():
            dispatchables = _parse_dispatchables(root.member("dispatchables"), foreign, sizes)
        with failures.collected():
            command_nodes = root.member("commands").elements()
    meter().require("graph_parts", len(dispatchables) + len(command_nodes), root.path)
    # Bindings can only be judged when all resources and descs are known.
    commands = []
    known = {name: each for name, each in dispatchables.items() if each is not None}
    with Failures() as failures:
        for name, dispatchable in known.items():
            with failures.collected(), suppress(FileNotReadError):
                node = root.member("dispatchables").member(name)
                known[name] = _with_initial_bindings(dispatchable, node, resources)
        for node in command_nodes:
            with failures.collected(), suppress(FileNotReadError):
                commands.append(_parse_command(node, resources, dispatchables, folders))
    if foreign is not None:
        onnx = [each.desc.read for each in known.values() if isinstance(each.desc, OnnxDispatchable)]
        sizes.require_used(onnx, root.at("dispatchables"))
    read = {name: resource for name, resource in resources.items() if resource is not None}
    return DispatchModel(read, known, tuple(commands))


def _parse_dispatchables(
    node: JsonNode, folders: Folders | None, sizes: Sizes
) -> dict[str, NamedDispatchable | None]:
    """Return the dispatchables by name. Without `folders` no file is read, and those that are files are
    None."""
    dispatchables: dict[str, NamedDispatchable | None] = {}
    with Failures() as failures:
        for name, child in node.members().items():
            with failures.collected():
                kind = child.member("type").string().lower()
                if kind in _FOREIGN_FIELDS:
                    dispatchables[name] = _parse_foreign(name, kind, child, folders, sizes)
                else:
                    dispatchables[name] = _parse_dispatchable(name, child)
    return dispatchables


def _parse_foreign(
    name: str, kind: str, node: JsonNode, folders: Folders | None, sizes: Sizes
) -> NamedDispatchable | None:
    """Read a dispatchable that is a file."""
    node.members(_FOREIGN_FIELDS[kind])
    source, flags = node.member("sourcePath"), _parse_flags(node)
    names, denotations = (_parse_sizes(node, field) for field in _ONNX_SIZES)
    file, own = source.string(), Sizes(names, denotations)
    if folders is None:
        return None
    path = source_path(source, file, folders)
    content: ForeignDispatchable
    with located(source.path):
        content = (
            read_onnx(path, own, sizes, folders.sources)
            if kind == "onnx"
            else SerializedDispatchable(read_graph(path, folders.sources))
        )
        points = content.bind_points()
    return NamedDispatchable(node.path, name, content, flags, points, {})


def _parse_sizes(node: JsonNode, field: str) -> dict[str, int]:
    """Return sizes of an ONNX model by the names, or the denotations, of dimensions."""
    given = node.optional(field)
    return (
        {} if given is None else {name: each.integer(1, UINT32_MAX) for name, each in given.members().items()}
    )


def _parse_flags(node: JsonNode) -> ExecutionFlags:
    flags = node.optional("executionFlags")
    return flags_value(flags, "EXECUTION_FLAGS", ExecutionFlags) if flags else ExecutionFlags.NONE


def _parse_dispatchable(name: str, node: JsonNode) -> NamedDispatchable:
    """Return a DirectML operator: its desc in `desc`, or its fields beside `type`."""
    type_node = node.member("type")
    if type_node.string().lower() == "hlsl":
        raise Unsupported(f'{type_node.path}: "{name}" is an HLSL compute shader, which needs Direct3D')
    compile_type = node.optional("dmlCompileType")
    with Failures() as failures:
        with failures.collected():
            desc = parse_operator_desc(node, beside=_OPERATOR_FIELDS)
        with failures.collected():
            if compile_type is not None and compile_type.string() not in _COMPILE_TYPES:
                compile_type.fail(f"one of {quoted(_COMPILE_TYPES)}")
        with failures.collected():
            flags = _parse_flags(node)
    return NamedDispatchable(node.path, name, desc, flags, bind_points(desc), {})


def _with_initial_bindings(
    dispatchable: NamedDispatchable, node: JsonNode, resources: Resources
) -> NamedDispatchable:
    bindings = node.optional("bindings") or JsonNode({}, node.at("bindings"))
    initial = parse_bindings(bindings, dispatchable.bind_points, resources, initial=True)
    return replace(dispatchable, initial_bindings=initial)


def _parse_command(
    node: JsonNode,
    resources: Resources,
    dispatchables: Mapping[str, NamedDispatchable | None],
    folders: Folders | None,
) -> Command:
    kind = node.member("type")
    known = _COMMAND_FIELDS.get(kind.string().lower())
    if known is None:
        kind.fail('"dispatch", "print" or "writeFile"')
    node.members(known)
    if kind.string().lower() == "dispatch":
        return _parse_dispatch(node, resources, dispatchables)
    resource = resource_at(node.member("resource"), resources)
    if kind.string().lower() == "writefile":
        return _parse_write_file(node, resource, folders)
    if resource.data_type is TensorDataType.UNKNOWN:
        _fail_mixed(node, resource)
    verbose = node.optional("verbose")
    return Print(node.path, resource.name, verbose.boolean() if verbose else False)


def _parse_dispatch(
    node: JsonNode, resources: Resources, dispatchables: Mapping[str, NamedDispatchable | None]
) -> Dispatch:
    name_node = node.member("dispatchable")
    name = name_node.string()
    if name not in dispatchables:
        name_node.fail("the name of a dispatchable", f'"{name}"{suggestion(name, dispatchables)}')
    groups = node.optional("threadGroupCount")
    if groups is not None and len([element.integer(1, UINT32_MAX) for element in groups.elements()]) != 3:
        groups.fail("an array of 3 integers")
    dispatchable = dispatchables[name]
    if dispatchable is None:
        raise FileNotReadError
    points = dispatchable.bind_points
    bindings = parse_bindings(node.member("bindings"), points, resources, initial=False)
    return Dispatch(node.path, name, bindings)


def _parse_write_file(node: JsonNode, resource: Resource, folders: Folders | None) -> WriteFile:
    target = _parse_target(node.member("targetPath"), folders)
    dimensions = _parse_dimensions(node, resource)
    extension = target.suffix.lower()
    if extension in images.EXTENSIONS:
        _check_picture(node, resource, dimensions)
        if folders is not None:
            images.pillow()
    elif extension == ".npy" and resource.data_type is TensorDataType.UNKNOWN:
        _fail_mixed(node, resource)
    return WriteFile(node.path, resource.name, target, dimensions, folders.targets if folders else None)


def _parse_target(node: JsonNode, folders: Folders | None) -> Path:
    """Return the path of a file to write. Without `folders` it may be anywhere."""
    name = node.string()
    target = folders.outputs / name if folders else Path(name)
    if not name or "\0" in name or (folders and os.path.isdir(target)):
        node.fail("the name of a file")
    if folders and folders.targets:
        if within(folders.targets, name) is None:
            node.fail(f"a file in {folders.targets} (--output-directory; --allow-any-path writes others too)")
        if os.path.exists(target) and not os.path.isfile(target):
            node.fail(
                "the name of a file, which is no pipe and no device (--allow-any-path writes these too)"
            )
    if folders:
        ancestor = next(folder for folder in target.absolute().parents if os.path.exists(folder))
        if not ancestor.is_dir() or not os.access(ancestor, os.W_OK):
            node.fail("a file in a folder that can be written", str(target))
    return target


def _fail_mixed(node: JsonNode, resource: Resource) -> NoReturn:
    node.member("resource").fail("a resource whose values have one type", f'"{resource.name}" with several')


def _parse_dimensions(node: JsonNode, resource: Resource) -> tuple[int, ...] | None:
    dimensions_node = node.optional("dimensions")
    if dimensions_node is None or not dimensions_node.elements():
        return None
    dimensions = tuple(element.integer(1, UINT32_MAX) for element in dimensions_node.elements())
    if resource.data_type is not TensorDataType.UNKNOWN:
        available = element_count(resource.data_type, resource.size_in_bytes)
        if prod(dimensions) > available:
            dimensions_node.fail(f"at most the {available} elements of the resource", str(prod(dimensions)))
    return dimensions


def _check_picture(node: JsonNode, resource: Resource, dimensions: tuple[int, ...] | None) -> None:
    if not images.holds_pixels(resource.data_type):
        expected = "a resource of FLOAT16, FLOAT32, FLOAT64 or UINT8"
        node.member("resource").fail(expected, resource.data_type.name)
    axis = images.channel_axis(dimensions or ())
    if dimensions is None or axis is None:
        given = "none" if dimensions is None else str(list(dimensions))
        JsonNode(None, node.at("dimensions")).fail(
            "[1, C, H, W] or [1, H, W, C] with 1, 3 or 4 channels", given
        )
    target = node.member("targetPath")
    if dimensions[axis] == 4 and not target.string().lower().endswith(".png"):
        target.fail("a .png file, because JPEG has no alpha channel")
