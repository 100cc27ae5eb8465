"""Read a whole model, and report all that is wrong at once. Nothing is allocated, compiled or written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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
from opendml.json_files.node import UINT32_MAX, Failures, JsonNode, UnknownPartError, quoted, suggestion
from opendml.spec.enums import ExecutionFlags, FeatureLevel, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.validator import validate

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
    feature_level: FeatureLevel | None = None,
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
        feature_level: also report the operators that are not valid at this level; None: `prepare` does.

    Raises:
        InvalidArgument: its failures name the JSON path, what was expected and what was given. A file that is
            not where it must be is such a failure. What is not supported is among them.
        Unsupported: nothing is wrong, but a dispatchable is no DirectML operator, or a library is missing.
    """
    folders = Folders.of(path, output_directory, input_directory, any_path=allow_any_path)
    return parse_model(read(path), folders, sizes, feature_level)


def read(path: Path) -> JsonNode:
    """Return the JSON value in the file `path` ("-" is standard input).

    Raises:
        InvalidArgument: there is none.
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
    with Failures() as failures:
        return _parse(root, None, folders, sizes, failures).dispatchables


def examine(root: JsonNode) -> tuple[Mapping[str, NamedDispatchable], Failures]:
    """Return the operators of a model that are right, and all that is wrong with it, without its files."""
    failures = Failures()
    return _parse(root, None, None, NO_SIZES, failures).dispatchables, failures


def parse_model(
    root: JsonNode, folders: Folders, sizes: Sizes = NO_SIZES, feature_level: FeatureLevel | None = None
) -> DispatchModel:
    """Return the model that `root` describes; see `load`."""
    with Failures() as failures:
        return _parse(root, folders, folders, sizes, failures, feature_level)


def _parse(
    root: JsonNode,
    folders: Folders | None,
    foreign: Folders | None,
    sizes: Sizes,
    failures: Failures,
    level: FeatureLevel | None = None,
) -> DispatchModel:
    """Return the parts of a model that are right. A part that depends on a wrong one is left out.

    Args:
        root: its JSON.
        folders: where files of resources are; None: these resources are left out.
        foreign: where files of dispatchables are; None: these dispatchables are left out.
        sizes: of its ONNX models.
        failures: collects all that is wrong.
        level: the feature level that operators must be valid at; None: that is not checked.
    """
    root.known_members(_ROOT_FIELDS, failures)
    resources: Resources | None = None
    dispatchables: dict[str, NamedDispatchable | None] | None = None
    command_nodes: list[JsonNode] = []
    with failures.collected():
        resources = parse_resources(root.member("resources"), folders, failures)
    with failures.collected():
        dispatchables = _parse_dispatchables(root.member("dispatchables"), foreign, sizes, failures)
    with failures.collected():
        command_nodes = root.member("commands").elements()
    meter().require("graph_parts", len(dispatchables or ()) + len(command_nodes), root.path)
    known = {name: each for name, each in (dispatchables or {}).items() if each is not None}
    if level is not None:
        _validate(known.values(), level, failures)
    commands = []
    for name, dispatchable in known.items():
        with failures.collected(), suppress(UnknownPartError):
            node = root.member("dispatchables").member(name)
            known[name] = _with_initial_bindings(dispatchable, node, resources)
    for node in command_nodes:
        with failures.collected(), suppress(UnknownPartError):
            commands.append(_parse_command(node, resources, dispatchables, folders))
    if len(commands) == len(command_nodes):
        _require_values(zip(command_nodes, commands, strict=True), resources or {}, failures)
    if foreign is not None and dispatchables is not None and len(known) == len(dispatchables):
        onnx = [each.desc.read for each in known.values() if isinstance(each.desc, OnnxDispatchable)]
        with failures.collected():
            sizes.require_used(onnx, root.at("dispatchables"))
    right = {name: resource for name, resource in (resources or {}).items() if resource is not None}
    return DispatchModel(right, known, tuple(commands))


def _validate(dispatchables: Iterable[NamedDispatchable], level: FeatureLevel, failures: Failures) -> None:
    """Collect what is wrong with operators at a feature level."""
    for dispatchable in dispatchables:
        if isinstance(dispatchable.desc, OperatorDesc):
            with failures.collected(), located(dispatchable.path):
                validate(dispatchable.desc, feature_level=level)


def _parse_dispatchables(
    node: JsonNode, folders: Folders | None, sizes: Sizes, failures: Failures
) -> dict[str, NamedDispatchable | None]:
    """Return the dispatchables by name, None for those that are wrong.

    Without `folders` no file is read, and those that are files are None.
    """
    dispatchables: dict[str, NamedDispatchable | None] = {}
    for name, child in node.members().items():
        dispatchables[name] = None
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


def _require_values(
    commands: Iterable[tuple[JsonNode, Command]], resources: Resources, failures: Failures
) -> None:
    """Collect the commands that read a deferred resource before a dispatch has bound it to an output."""
    bound = set[str]()
    for node, command in commands:
        if isinstance(command, Dispatch):
            given = [each for several in command.bindings.values() for each in several]
            bound.update(each.resource for each in given if each is not None)
        elif (
            (resource := resources[command.resource]) and resource.is_deferred and resource.name not in bound
        ):
            with failures.collected():
                wanted = "a resource that a dispatch before binds to an output"
                node.member("resource").fail(wanted, f'"{resource.name}", which is deferred')


def _with_initial_bindings(
    dispatchable: NamedDispatchable, node: JsonNode, resources: Resources | None
) -> NamedDispatchable:
    bindings = node.optional("bindings") or JsonNode({}, node.at("bindings"))
    initial = parse_bindings(bindings, dispatchable.bind_points, resources, initial=True)
    return replace(dispatchable, initial_bindings=initial)


def _parse_command(
    node: JsonNode,
    resources: Resources | None,
    dispatchables: Mapping[str, NamedDispatchable | None] | None,
    folders: Folders | None,
) -> Command:
    kind = node.member("type")
    known = _COMMAND_FIELDS.get(kind.string().lower())
    if known is None:
        kind.fail('"dispatch", "print" or "writeFile"')
    with Failures() as failures:
        node.known_members(known, failures)
        if kind.string().lower() == "dispatch":
            return _parse_dispatch(node, resources, dispatchables, failures)
        if kind.string().lower() == "writefile":
            return _parse_write_file(node, resources, folders, failures)
        verbose = False
        with failures.collected():
            verbose_node = node.optional("verbose")
            verbose = verbose_node.boolean() if verbose_node else False
        with failures.collected():
            resource = resource_at(node.member("resource"), resources)
            if resource.data_type is TensorDataType.UNKNOWN and not resource.is_deferred:
                _fail_mixed(node, resource)
    return Print(node.path, resource.name, verbose)


def _parse_dispatch(
    node: JsonNode,
    resources: Resources | None,
    dispatchables: Mapping[str, NamedDispatchable | None] | None,
    failures: Failures,
) -> Dispatch:
    name_node = node.member("dispatchable")
    name = name_node.string()
    with failures.collected():
        groups = node.optional("threadGroupCount")
        if groups is not None and len([each.integer(1, UINT32_MAX) for each in groups.elements()]) != 3:
            groups.fail("an array of 3 integers")
    if dispatchables is None:
        raise UnknownPartError
    if name not in dispatchables:
        name_node.fail("the name of a dispatchable", f'"{name}"{suggestion(name, dispatchables)}')
    dispatchable = dispatchables[name]
    if dispatchable is None:
        raise UnknownPartError
    points = dispatchable.bind_points
    bindings = parse_bindings(node.member("bindings"), points, resources, initial=False)
    return Dispatch(node.path, name, bindings)


def _parse_write_file(
    node: JsonNode, resources: Resources | None, folders: Folders | None, failures: Failures
) -> WriteFile:
    target: Path | None = None
    with failures.collected():
        target = _parse_target(node.member("targetPath"), folders)
    resource = resource_at(node.member("resource"), resources)
    with failures.collected():
        dimensions = _parse_dimensions(node, resource)
        extension = "" if target is None else target.suffix.lower()
        if resource.is_deferred:
            if dimensions is not None:
                node.member("dimensions").fail('nothing for a "deferred" resource, which has its own')
        elif extension in images.EXTENSIONS:
            _check_picture(node, resource, dimensions)
            if folders is not None:
                images.pillow()
        elif extension == ".npy" and resource.data_type is TensorDataType.UNKNOWN:
            _fail_mixed(node, resource)
    failures.raise_any()
    assert target is not None
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
