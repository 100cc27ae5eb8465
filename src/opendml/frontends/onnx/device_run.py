"""Runs of ONNX models over the memory of a device that has memory and streams of its own.

Tensors between compiled graphs stay on the device. Only what a node outside of DirectML reads is copied to
the host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.onnx.device_tensor import Array, DeviceTensor, carrier, in_graph, uploaded
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.caches import CachedContents, Caches, beside_inputs, bound_caches
from opendml.runtime.graphs.layout_copies import CopiesOnStream
from opendml.runtime.memory.host_array import array_over
from opendml.targets.backend import StreamBackend
from opendml.targets.memory import Place, address_of
from opendml.targets.registry import backend_at

if TYPE_CHECKING:
    from opendml.frontends.onnx.model import OnnxModel
    from opendml.runtime.graphs.caches import Grown
    from opendml.runtime.graphs.model import Model
    from opendml.runtime.objects.device import Device


def run_on_device(
    model: OnnxModel,
    inputs: Mapping[str, Any],
    names: Sequence[str],
    bound: Mapping[str, DeviceTensor],
    on_device: Collection[str],
    caches: Caches | None,
) -> dict[str, Any]:
    """Run a model on its device. The arguments and the result are those of `OnnxModel._run_on_device`."""
    given = {
        name: np.empty(each.shape, each.dtype) if isinstance(each, DeviceTensor) and not each.size else each
        for name, each in inputs.items()
    }
    backend = model.device._backend
    assert isinstance(backend, StreamBackend)
    alone = bound
    if caches is None and bound:
        views, memory = (
            {name: array_over(each.memory) for name, each in some.items() if isinstance(each, DeviceTensor)}
            for some in (given, bound)
        )
        caches = bound_caches(views, memory, backend.place, (given, bound))
        shared = beside_inputs(views, memory)
        alone = {name: each for name, each in bound.items() if name not in shared}
    contents = DeviceContents(given, caches, model.device, alone)
    try:
        results = dict(zip(model.output_names, model._run_traced(contents), strict=True))
        found = {name: contents.finished(name, results[name], bound.get(name)) for name in names}
    finally:
        contents.end(bound.values())
    for name, each in found.items():
        if isinstance(each, DeviceTensor):
            if name not in on_device and name not in bound:
                found[name] = each.numpy()
        elif name in on_device:
            found[name] = uploaded(each, backend.place)
    return found


class DeviceContents(CachedContents):
    """The contents of the tensors of a run on a device: DeviceTensors, and arrays in host memory.

    Args:
        contents: the inputs by name.
        caches: the memory of outputs that begin with inputs. None: there is none.
        device: the device.
        bound: the memory of other outputs, by name. It shares nothing with inputs.
    """

    def __init__(
        self,
        contents: Mapping[str, Any],
        caches: Caches | None,
        device: Device,
        bound: Mapping[str, DeviceTensor],
    ) -> None:
        super().__init__(contents, caches)
        self._device, self._bound = device, bound
        backend = device._backend
        assert isinstance(backend, StreamBackend)
        self._backend = backend
        self._call = backend.call(_array_on(backend.place))

    def copy(self) -> DeviceContents:
        """Return the same contents in a dict of its own."""
        other = DeviceContents.__new__(DeviceContents)
        other.update(self)
        other.__dict__.update(self.__dict__)
        return other

    def to_host(self, names: Iterable[str]) -> None:
        """Copy some contents to host memory, where they stay from now on."""
        for name in names:
            content = self[name]
            if isinstance(content, DeviceTensor):
                self[name] = content.numpy()

    def start(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        grown: Grown | None,
        results: Iterable[tuple[str, np.dtype[Any], tuple[int, ...] | None]],
    ) -> None:
        """Add a graph to the stream of the run, and its results to the contents.

        Args:
            model: the graph.
            inputs: its inputs by name, as contents.
            grown: the arrays of its inputs and outputs that are caches. None: there are none.
            results: the names, types and sizes of its results. None: they have the sizes of the graph.
        """
        kept = {} if grown is None else grown.inputs
        outputs = {} if grown is None else dict(grown.outputs)
        given = {name: self._array(kept.get(name, inputs.get(name))) for name in model.input_names}
        layouts = dict(zip(model.output_names, model._output_layouts, strict=True))
        in_place = set(outputs)
        for name, type, sizes in results:
            if name in outputs:
                continue
            layout, bound = layouts[name], self._bound.get(name)
            wanted = carrier(type), layout.sizes if sizes is None else sizes
            if bound is not None and _form(bound) == wanted:
                outputs[name] = bound
            else:
                outputs[name] = self._call.empty(layout.sizes, layout.type)[0]
        arrays = {name: self._array(each) for name, each in outputs.items()}
        model._run_on_device(self._call, given, arrays, in_place)
        for name, type, sizes in results:
            self[name] = self._result(outputs[name], arrays[name], type, sizes)

    def _result(
        self, output: Any, array: Any, type: np.dtype[Any], sizes: tuple[int, ...] | None
    ) -> DeviceTensor:
        if isinstance(output, DeviceTensor):
            return output
        shape = tuple(array.shape) if sizes is None else sizes
        if tuple(array.shape) != (shape or (1,)):
            array = array.reshaped(shape or (1,))
        return DeviceTensor(array, type, shape, self._backend.place)

    def copied(self, content: DeviceTensor) -> DeviceTensor:
        """Return a copy of a tensor on the device."""
        made = self._call.empty(content.shape or (1,), ScalarType[carrier(content.dtype).name.upper()])[0]
        self._copy(content, made)
        return DeviceTensor(made, content.dtype, content.shape, self._backend.place)

    def finished(self, name: str, result: Any, bound: DeviceTensor | None) -> Any:
        """Return an output, which is copied to its memory if it lies elsewhere.

        Raises:
            InvalidArgument: the memory has other sizes or another type.
        """
        if bound is None or result is bound:
            return result
        if _form(result) != _form(bound):
            raise InvalidArgument(
                f"output {name!r}: {result.dtype.name} of sizes {list(result.shape)} into "
                f"{bound.dtype.name} of sizes {list(bound.shape)}; both must be the same"
            )
        self._copy(result, bound)
        return bound

    def end(self, written: Iterable[DeviceTensor]) -> None:
        """End the run. Memory whose streams opendml does not know is written when this returns."""
        self._call.end([each.array for each in written if not each.is_own])

    def _array(self, content: Any) -> Any:
        """Return a content as an array of the device."""
        if isinstance(content, DeviceTensor):
            return content.array
        return self._uploaded(content).array if isinstance(content, np.ndarray) else content

    def _uploaded(self, content: Array) -> DeviceTensor:
        """Return a copy of a host array that is complete for the stream of the run."""
        host = in_graph(content)
        made, address = self._call.empty(host.shape, ScalarType[host.dtype.name.upper()])
        self._call.copy(address, address_of(host), host.nbytes)
        return DeviceTensor(made, content.dtype, content.shape, self._backend.place)

    def _copy(self, content: Any, target: Any) -> None:
        source, into = (self._call.memory(self._array(each), "tensor") for each in (content, target))
        CopiesOnStream(self._device).copy(self._call, source, into)()


@cache
def _array_on(place: Place) -> Any:
    """Return an array of opendml, which makes the device's own stream that of a run."""
    return backend_at(place).empty(packed(ScalarType.UINT8, [1]))


def _form(tensor: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the type in the graph and the sizes of a tensor."""
    return carrier(tensor.dtype), tensor.shape
