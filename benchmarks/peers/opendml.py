"""opendml: a compiled operator on bound arrays, the same in place, and the immediate function."""

from __future__ import annotations

from typing import Any

from numpy.lib.stride_tricks import as_strided

from benchmarks.cases import Activation, Case, Layout
from benchmarks.contender import Contender, Mode, NotExpressible
from benchmarks.data import Data, Tensor
from benchmarks.formulas import EPSILON


class OpenDml:
    name = "opendml"
    modes = (Mode.BOUND, Mode.IN_PLACE, Mode.NEW)

    def __init__(self, threads: int) -> None:
        import opendml

        self._dml: Any = opendml
        self._device = opendml.Device("cpu", threads=threads)
        self.version = opendml.__version__

    def prepare(self, data: Data, mode: Mode) -> Contender:
        if mode is Mode.NEW:
            return self._immediate(data)
        if len(data.case.activations) > 1:
            return self._graph(data, mode)
        if mode is Mode.IN_PLACE and (data.case.axes or data.case.input_layout != data.case.output_layout):
            raise NotExpressible("DirectML allows no output over the input here")
        source = _copied(data.x) if mode is Mode.IN_PLACE else data.x
        output = source if mode is Mode.IN_PLACE else data.empty_output()
        inputs = [source.memory, data.scale, data.bias] if data.case.axes else [source.memory]
        compiled = self._device.compile_operator(self._device.create_operator(self._desc(data.case)))
        bound = compiled.bind(inputs, [output.memory])

        def reset() -> None:
            source.memory[...] = data.x.memory

        return Contender(
            self.name, mode, bound.dispatch, lambda _: output.array, reset if mode is Mode.IN_PLACE else None
        )

    def _tensor(self, case: Case, layout: Layout) -> Any:
        strides = None if layout is Layout.PACKED else case.strides(layout)
        return self._dml.TensorDesc(self._dml.TensorDataType[case.dtype.upper()], case.sizes, strides)

    def _desc(self, case: Case) -> Any:
        source, target = self._tensor(case, case.input_layout), self._tensor(case, case.output_layout)
        if not case.axes:
            return _activation(self._dml, case.activations[0], source, target)
        parameter = self._dml.TensorDesc(source.data_type, case.parameter_sizes)
        return self._dml.descs.MeanVarianceNormalization1(
            source,
            parameter,
            parameter,
            target,
            axes=case.axes,
            normalize_variance=True,
            epsilon=EPSILON,
            fused_activation=_activation(self._dml, case.activations[0]),
        )

    def _immediate(self, data: Data) -> Contender:
        case, dml = data.case, self._dml
        if len(case.activations) > 1 or case.input_layout != case.output_layout:
            raise NotExpressible("it takes more than one function")
        activation = case.activations[0]
        if not case.axes:
            function = getattr(dml, f"activation_{activation.name.lower()}")
            attributes = dict(activation.attributes)
            return Contender(
                self.name,
                Mode.NEW,
                lambda: function(data.x.array, **attributes, device=self._device),
                lambda y: y,
            )
        fused = _activation(dml, activation)

        def normalized() -> Any:
            return dml.mean_variance_normalization1(
                data.x.array,
                data.scale,
                data.bias,
                axes=case.axes,
                normalize_variance=True,
                epsilon=EPSILON,
                fused_activation=fused,
                device=self._device,
            )

        return Contender(self.name, Mode.NEW, normalized, lambda y: y)

    def _graph(self, data: Data, mode: Mode) -> Contender:
        case, dml = data.case, self._dml
        if mode is Mode.IN_PLACE:
            raise NotExpressible("a graph writes to arrays of its own")
        graph = dml.Graph()
        value = graph.input("x", dml.TensorDataType[case.dtype.upper()], case.sizes)
        for activation in case.activations:
            value = getattr(dml, f"activation_{activation.name.lower()}")(
                value, **dict(activation.attributes)
            )
        model = graph.compile({"y": value}, device=self._device)
        output = data.empty_output().array
        inputs, outputs = {"x": data.x.array}, {"y": output}
        return Contender(self.name, mode, lambda: model.run(inputs, outputs), lambda _: output)


def _activation(dml: Any, activation: Activation, *tensors: Any) -> Any:
    name = "".join(word.capitalize() for word in activation.name.split("_"))
    return getattr(dml.descs, f"Activation{name}")(*tensors, **dict(activation.attributes))


def _copied(tensor: Tensor) -> Tensor:
    memory = tensor.memory.copy()
    array = as_strided(memory, tensor.array.shape, tensor.array.strides)
    return Tensor(memory, array)
