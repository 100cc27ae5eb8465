"""Read the resources of a model: buffers, and how they are filled at the start."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch import files, images
from opendml.frontends.dxdispatch.descs import count_at, data_type_at
from opendml.frontends.dxdispatch.model import Folders, Initializer, Resource
from opendml.frontends.dxdispatch.values import (
    Bytes,
    Elements,
    byte_count,
    element_count,
    encode,
    scalar,
)
from opendml.json_files.node import UINT32_MAX, UINT64_MAX, Failures, JsonNode, UnknownPartError
from opendml.model_files import read_all
from opendml.spec.enums import TensorDataType
from opendml.spec.four_bit import numpy_type

_UNKNOWN = TensorDataType.UNKNOWN
_FIELDS = (
    "type",
    "initialValues",
    "initialValuesDataType",
    "initialValuesOffsetInBytes",
    "sizeInBytes",
    "resampleSize",
    "resampleMode",
)


def values_of(data: Bytes, element_count: int) -> Initializer:
    """Return an initializer of given bytes."""
    return Initializer(data.size, element_count, partial(np.copyto, src=data))


def ramp(data_type: TensorDataType, element_count: int, start: float, delta: float = 0) -> Initializer:
    """Return an initializer of values that grow by a step; the step 0 repeats one value.

    The arithmetic is that of the type: floats are rounded, and integers wrap.
    """

    def write(target: Bytes) -> None:
        elements = np.full(element_count, delta or start, numpy_type(data_type))
        if delta:
            elements[0] = start
            with np.errstate(all="ignore"):
                np.add.accumulate(elements, out=elements)
        target[:] = encode(elements, data_type)

    return Initializer(byte_count(data_type, element_count), element_count, write)


def parse_resources(
    node: JsonNode, folders: Folders | None, failures: Failures
) -> dict[str, Resource | None]:
    """Return the resources by name, None for those that are wrong.

    Without `folders` no file is read, and resources that need one are None.

    Args:
        node: the object with the resources.
        folders: where their files are.
        failures: collects what is wrong with resources.
    """
    resources: dict[str, Resource | None] = {}
    for name, child in node.members().items():
        resources[name] = None
        with failures.collected(), suppress(UnknownPartError):
            resources[name] = _resource(name, child, folders)
    return resources


def _resource(name: str, node: JsonNode, folders: Folders | None) -> Resource:
    with Failures() as failures:
        node.known_members(_FIELDS, failures)
        offset, given = 0, None
        with failures.collected():
            kind = node.optional("type")
            if kind is not None and kind.string() != "buffer":
                kind.fail('"buffer"')
        if node.member("initialValues").value == "deferred":
            return _deferred(name, node)
        with failures.collected():
            offset = count_at(node, "initialValuesOffsetInBytes")
        with failures.collected():
            if (size_node := node.optional("sizeInBytes")) is not None:
                given = size_node.integer(1, UINT64_MAX)
        initializer, data_type = _initializer(node, folders)
        size = offset + initializer.size_in_bytes
        if size_node is not None and given is not None:
            if given < size:
                values = f"{initializer.size_in_bytes} bytes of values from byte {offset} on"
                size_node.fail(f"at least {size}: {values}")
            size = given
    return Resource(node.path, name, data_type, initializer, offset, size)


def _deferred(name: str, node: JsonNode) -> Resource:
    """Return a resource that an output of an ONNX model becomes. A type beside it has no effect."""
    with Failures() as failures:
        for field in ("initialValuesOffsetInBytes", "sizeInBytes"):
            with failures.collected():
                if (given := node.optional(field)) is not None:
                    given.fail('nothing beside "deferred", whose size is that of the output')
        if (type_node := node.optional("initialValuesDataType")) is not None:
            data_type_at(type_node)
    return Resource(node.path, name, _UNKNOWN, Initializer(0, 0, lambda _: None), 0, 0, is_deferred=True)


def _initializer(node: JsonNode, folders: Folders | None) -> tuple[Initializer, TensorDataType]:
    """Return the field `initialValues` and the type of its elements (UNKNOWN for values of several types)."""
    type_node = node.optional("initialValuesDataType")
    data_type = data_type_at(type_node) if type_node else _UNKNOWN
    values = node.member("initialValues")
    if isinstance(values.value, list):
        return (_mixed(values) if data_type is _UNKNOWN else _array(values, data_type)), data_type
    if not isinstance(values.value, dict):
        values.fail('an array, an object or "deferred"')
    if "sourcePath" in values.value:
        values.members(("sourcePath",))
        return _file(values.member("sourcePath"), node, data_type, folders)
    if data_type is _UNKNOWN:
        _fail_unknown(node)
    return _generated(values, data_type), data_type


def _generated(node: JsonNode, data_type: TensorDataType) -> Initializer:
    """Parse {valueCount, value} or {valueCount, valueStart, valueDelta}."""
    given = node.members()
    if "value" in given and "valueStart" in given:
        node.fail("either value or valueStart with valueDelta", "both")
    names = ("value",) if "value" in given else ("valueStart", "valueDelta")
    numbers, count = list[float](), 0
    with Failures() as failures:
        node.known_members(("valueCount", *names), failures)
        for name in names:
            with failures.collected():
                numbers.append(scalar(node.member(name), data_type))
        with failures.collected():
            count = node.member("valueCount").integer(1, UINT32_MAX)
    return ramp(data_type, count, *numbers)


def _array(node: JsonNode, data_type: TensorDataType) -> Initializer:
    """Return numbers of one type."""
    numbers = _not_empty(node).each(lambda element: scalar(element, data_type))
    return _values(np.array(numbers, numpy_type(data_type)), data_type)


def _mixed(node: JsonNode) -> Initializer:
    """Return numbers of several types, one after the other without padding. Each is an object {type,
    value}."""
    parts = []
    for element in _not_empty(node).elements():
        if not isinstance(element.value, dict):
            element.fail("an object with type and value, because initialValuesDataType is UNKNOWN")
        element.members(("name", "type", "value"))
        data_type = data_type_at(element.member("type"))
        if data_type is _UNKNOWN:
            element.member("type").fail("a data type other than UNKNOWN")
        number = scalar(element.member("value"), data_type)
        parts.append(encode(np.array([number], numpy_type(data_type)), data_type))
    return values_of(np.concatenate(parts), len(parts))


def _values(elements: Elements, data_type: TensorDataType) -> Initializer:
    return values_of(encode(elements, data_type), elements.size)


def _fail_unknown(resource: JsonNode) -> NoReturn:
    path = resource.at("initialValuesDataType")
    raise InvalidArgument(f"{path}: missing or UNKNOWN; these values need a data type")


def _not_empty(node: JsonNode) -> JsonNode:
    if not node.elements():
        node.fail("at least one value")
    return node


def _file(
    source: JsonNode, resource: JsonNode, data_type: TensorDataType, folders: Folders | None
) -> tuple[Initializer, TensorDataType]:
    """Return the contents of a .npy file, of a picture, or any other file's bytes, and the type of its
    elements."""
    name = source.string()
    if folders is None:
        raise UnknownPartError
    path = source_path(source, name, folders)
    try:
        with files.opened(path, folders.sources) as file:
            if path.suffix.lower() == ".npy":
                values, data_type = _npy(source, file, data_type)
            elif data_type is _UNKNOWN:
                _fail_unknown(resource)
            elif path.suffix.lower() in images.EXTENSIONS:
                values = _image(resource, file, data_type)
            else:
                values = _raw(source, file, data_type)
    except (OSError, ValueError, EOFError, OverflowError, MemoryError) as error:
        source.fail("a readable file", f"{name}: {error or 'not enough memory'}")
    if not values.size_in_bytes:
        source.fail("at least one value", f"{name}, which is empty")
    return values, data_type


def source_path(source: JsonNode, name: str, folders: Folders) -> Path:
    """Return the path of the file of that name.

    Raises:
        InvalidArgument: there is none that may be read.
    """
    path = folders.source(name)
    if path is not None:
        return path
    if folders.any_path:
        source.fail(f"a file in {folders.inputs} or the current directory")
    source.fail(f"a file in {folders.inputs} (--input-directory; --allow-any-path reads others too)")


def _npy(source: JsonNode, file: BinaryIO, data_type: TensorDataType) -> tuple[Initializer, TensorDataType]:
    elements, own_type = files.read_npy(file)
    if data_type not in (_UNKNOWN, own_type):
        source.fail(f"elements of type {data_type.name} (initialValuesDataType)", own_type.name)
    return _values(elements, own_type), own_type


def _raw(source: JsonNode, file: BinaryIO, data_type: TensorDataType) -> Initializer:
    data = np.frombuffer(read_all(file, source.path), np.uint8)
    element_size = numpy_type(data_type).itemsize
    if data.size % element_size:
        source.fail(f"a multiple of {element_size} bytes, the size of {data_type.name}", f"{data.size} bytes")
    return values_of(data, element_count(data_type, data.size))


def _image(resource: JsonNode, file: BinaryIO, data_type: TensorDataType) -> Initializer:
    if not images.holds_pixels(data_type):
        resource.member("initialValuesDataType").fail("FLOAT16, FLOAT32, FLOAT64 or UINT8 for a picture")
    mode, size = resource.optional("resampleMode"), resource.optional("resampleSize")
    if mode is not None and mode.string() != "scale":
        mode.fail('"scale"')
    dimensions = None
    if size is not None:
        dimensions = tuple(element.integer(1, UINT32_MAX) for element in size.elements())
        if images.channel_axis(dimensions) is None:
            size.fail("[1, C, H, W] or [1, H, W, C] with 1, 3 or 4 channels", str(list(dimensions)))
        meter().require_tensor(dimensions, 1 + numpy_type(data_type).itemsize, size.path)
    return _values(images.read(file, data_type, dimensions), data_type)
