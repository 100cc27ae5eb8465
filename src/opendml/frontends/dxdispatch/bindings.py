"""Read bindings of resources to tensors, and check them before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch.descs import count_at
from opendml.frontends.dxdispatch.model import (
    Bindings,
    BindPoint,
    Resource,
    ResourceBinding,
    Resources,
)
from opendml.frontends.dxdispatch.values import byte_count
from opendml.json_files.node import UINT32_MAX, Failures, JsonNode, UnknownPartError, suggestion
from opendml.spec.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT, TensorDataType, TensorFlags
from opendml.spec.tensor_desc import TensorDesc

_FIELDS = (
    "name",
    "elementCount",
    "elementSizeInBytes",
    "elementStride",
    "elementOffset",
    # What only shaders and ONNX models use is allowed and has no effect on an operator, as in DxDispatch.
    "format",
    "counter",
    "counterOffsetBytes",
    "shape",
)


def parse_bindings(
    node: JsonNode, bind_points: Iterable[BindPoint], resources: Resources | None, *, initial: bool
) -> Bindings:
    """Return the resources of tensor fields, each given as a string, an object, or an array of both.

    Tensors with OWNED_BY_DML are bound once, by the dispatchable's own bindings (`initial`). All others are
    bound at each dispatch. In an array, null stands for a tensor that is bound elsewhere. Tensors of ONNX
    models may be left out.
    """
    points = {point.name: point for point in bind_points}
    bindings: dict[str, tuple[ResourceBinding | None, ...]] = {}
    with Failures() as failures:
        given = node.known_members(points, failures)
        for point in points.values():
            wanted = [_is_owned(tensor) == initial for tensor in point.tensors]
            with failures.collected():
                if point.name not in given:
                    if any(wanted) and not point.is_optional:
                        raise InvalidArgument(f"{node.at(point.name)}: missing; the desc has this tensor")
                elif not any(wanted):
                    given[point.name].fail(_why_not(point, initial=initial))
                else:
                    bindings[point.name] = _bind(given[point.name], point, wanted, resources)
                    _require_one_output(given[point.name], point, bindings, resources)
    return bindings


def _require_one_output(
    node: JsonNode, point: BindPoint, bindings: Bindings, resources: Resources | None
) -> None:
    """Raise InvalidArgument if a deferred resource is bound to another output too."""
    others = {
        each.resource: other
        for other, several in bindings.items()
        for each in several
        if each is not None and other != point.name
    }
    for each in bindings[point.name]:
        resource = (resources or {}).get(each.resource) if each is not None else None
        if resource is not None and resource.is_deferred and resource.name in others:
            given = f'"{resource.name}", which {others[resource.name]} becomes'
            node.fail("a resource that no other output becomes", given)


def _is_owned(tensor: TensorDesc) -> bool:
    return bool(tensor.flags & TensorFlags.OWNED_BY_DML)


def _why_not(point: BindPoint, *, initial: bool) -> str:
    if not point.tensors:
        return "no binding, because the tensor is null in the desc"
    if initial:
        return "no binding at initialization, because the tensor is not flagged OWNED_BY_DML"
    return "no binding at dispatch, because the tensor is flagged OWNED_BY_DML and bound at initialization"


def _bind(
    node: JsonNode, point: BindPoint, wanted: Sequence[bool], resources: Resources | None
) -> tuple[ResourceBinding | None, ...]:
    sources = node.elements() if isinstance(node.value, list) else [node]
    if len(sources) != len(point.tensors):
        node.fail(f"{len(point.tensors)} resources, one for each tensor", f"{len(sources)}")
    bindings: list[ResourceBinding | None] = []
    with Failures() as failures:
        for source, tensor, is_wanted in zip(sources, point.tensors, wanted, strict=True):
            with failures.collected():
                if is_wanted:
                    bindings.append(_source(source, tensor, point, resources))
                elif source.value is None:
                    bindings.append(None)
                else:
                    time = (
                        "initialization (OWNED_BY_DML)"
                        if _is_owned(tensor)
                        else "dispatch (not OWNED_BY_DML)"
                    )
                    source.fail(f"null, because this tensor of the array is bound at {time}")
    return tuple(bindings)


def _deferred(node: JsonNode, resource: Resource, point: BindPoint) -> ResourceBinding:
    """Return the binding of a resource that an output of an ONNX model becomes."""
    if not (point.is_output and point.is_optional):
        node.fail("a resource with values", f'"{resource.name}", which an output of an ONNX model becomes')
    shape = None
    if isinstance(node.value, dict):
        with Failures() as failures:
            for field in ("elementOffset", "elementCount"):
                with failures.collected():
                    if count_at(node, field):
                        node.member(field).fail('0 for a "deferred" resource, which becomes the whole output')
            with failures.collected():
                shape = None if point.declared is None else _shape(node, point.declared)
    return ResourceBinding(node.path, resource.name, 0, shape)


def _source(
    node: JsonNode, tensor: TensorDesc, point: BindPoint, resources: Resources | None
) -> ResourceBinding:
    if isinstance(node.value, str):
        resource = resource_at(node, resources)
        if resource.is_deferred:
            return _deferred(node, resource, point)
        return _checked(node, resource, 0, tensor)
    if not isinstance(node.value, dict):
        node.fail("the name of a resource, or an object with it")
    node.members(_FIELDS)
    resource = resource_at(node.member("name"), resources)
    if resource.is_deferred:
        return _deferred(node, resource, point)
    size = _element_size(node, resource)
    offset = count_at(node, "elementOffset") * size
    if offset + count_at(node, "elementCount") * size > resource.allocated_bytes:
        available = max(resource.allocated_bytes - offset, 0)
        node.member("elementCount").fail(
            f"at most {available // size}, what the resource holds from byte {offset}"
        )
    shape = None if point.declared is None else _shape(node, point.declared)
    if shape is None:
        return _checked(node, resource, offset, tensor)
    checked = _checked(node, resource, offset, TensorDesc(tensor.data_type, shape or (1,)))
    return replace(checked, shape=shape)


def _shape(node: JsonNode, declared: tuple[int | None, ...]) -> tuple[int, ...] | None:
    """Return the sizes that a binding gives a tensor of an ONNX model, or None."""
    given = node.optional("shape")
    if given is None:
        return None
    shape = tuple(each.integer(1, UINT32_MAX) for each in given.elements())
    fits = len(shape) == len(declared) and all(
        own in (None, size) for own, size in zip(declared, shape, strict=True)
    )
    if not fits:
        wanted = ["?" if size is None else size for size in declared]
        given.fail(f"the sizes of the model, {wanted}", str(list(shape)))
    return shape


def _element_size(node: JsonNode, resource: Resource) -> int:
    """Return the bytes of an element in elementOffset and elementCount: given, or of the resource's values.

    The guide says elementStride, and the tool's parser reads elementSizeInBytes. Here they are the same.
    """
    given = count_at(node, "elementSizeInBytes") or count_at(node, "elementStride")
    if given or resource.data_type is TensorDataType.UNKNOWN:
        return given or 1
    return byte_count(resource.data_type, 1)


def _checked(node: JsonNode, resource: Resource, offset: int, tensor: TensorDesc) -> ResourceBinding:
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.guaranteed_base_offset_alignment)
    if offset % alignment:
        node.fail(f"an offset that is a multiple of {alignment} bytes", f"byte {offset}")
    try:
        needed = tensor.size_in_bytes
    except InvalidArgument:  # the validator says it better
        needed = 0
    if offset + needed > resource.allocated_bytes:
        available = max(resource.allocated_bytes - offset, 0)
        given = f'{available} from byte {offset} of "{resource.name}"'
        node.fail(f"a resource with {needed} bytes for the tensor", given)
    return ResourceBinding(node.path, resource.name, offset)


def resource_at(node: JsonNode, resources: Resources | None) -> Resource:
    """Return the resource that a string names.

    Raises:
        UnknownPartError: it is wrong, or its file was not read, or no resources are known.
    """
    name = node.string()
    if resources is None:
        raise UnknownPartError
    if name not in resources:
        node.fail("the name of a resource", f'"{name}"{suggestion(name, resources)}')
    resource = resources[name]
    if resource is None:
        raise UnknownPartError
    return resource
