"""Read the resources of a model: buffers, and how they are filled at the start."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from opendml.budget import meter
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.dxdispatch import files, images
from opendml.frontends.dxdispatch.descs import count_at, data_type_at
from opendml.frontends.dxdispatch.model import FileNotReadError, Folders, Initializer, Resource
from opendml.frontends.dxdispatch.values import (
    Bytes,
    Elements,
    byte_count,
    element_count,
    encode,
    scalar,
)
from opendml.json_files.node import UINT32_MAX, UINT64_MAX, Failures, JsonNode
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


def parse_resources(node: JsonNode, folders: Folders | None) -> dict[str, Resource | None]:
    """Return the resources by name. Without `folders` no file is read, and resources that need one are
    None."""
    resources: dict[str, Resource | None] = {}
    with Failures() as failures:
        for name, child in node.members().items():
            with failures.collected():
                try:
                    resources[name] = _resource(name, child, folders)
                except FileNotReadError:
                    resources[name] = None
    return resources


def _resource(name: str, node: JsonNode, folders: Folders | None) -> Resource:
    node.members(_FIELDS)
    kind = node.optional("type")
    if kind is not None and kind.string() != "buffer":
        kind.fail('"buffer"')
    initializer, data_type = _initializer(node, folders)
    offset, size_node = count_at(node, "initialValuesOffsetInBytes"), node.optional("sizeInBytes")
    size = offset + initializer.size_in_bytes
    if size_node is not None:
        given = size_node.integer(1, UINT64_MAX)
        if given < size:
            size_node.fail(
                f"at least {size}: {initializer.size_in_bytes} bytes of values from byte {offset} on"
            )
        size = given
    return Resource(node.path, name, data_type, initializer, offset, size)


def _initializer(node: JsonNode, folders: Folders | None) -> tuple[Initializer, TensorDataType]:
    """Return the field `initialValues` and the type of its elements (UNKNOWN for values of several types)."""
    type_node = node.optional("initialValuesDataType")
    data_type = data_type_at(type_node) if type_node else _UNKNOWN
    values = node.member("initialValues")
    if isinstance(values.value, list):
        return (_mixed(values) if data_type is _UNKNOWN else _array(values, data_type)), data_type
    if values.value == "deferred":
        raise Unsupported(
            f'{values.path}: "deferred" outputs of ONNX models are not supported; give values of their size'
        )
    if not isinstance(values.value, dict):
        values.fail("an array or an object")
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
    if "value" in given:
        node.members(("valueCount", "value"))
        start, delta = scalar(node.member("value"), data_type), None
    else:
        node.members(("valueCount", "valueStart", "valueDelta"))
        start = scalar(node.member("valueStart"), data_type)
        delta = scalar(node.member("valueDelta"), data_type)
    return ramp(data_type, node.member("valueCount").integer(1, UINT32_MAX), start, delta or 0)


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
        raise FileNotReadError
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
