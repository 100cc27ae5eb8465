"""`directml`, the fork of PyDirectML that goes on, for any machine: `import opendml.directml as dml`.

Programs of its interface as it is now (`Graph`, `Buffer`, `CompiledOperator`) and as it was before
(`GraphBuilder`, `Binding`, `Device.compute`) run. `python -m opendml.pydirectml SCRIPT.py ARGS` runs a script
that says `import directml` as it is.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from opendml import __version__ as __version__
from opendml.frontends.directml import activations, elementwise, gradients, movement, networks, reductions
from opendml.frontends.directml.activations import *  # noqa: F403 - its `__all__`
from opendml.frontends.directml.buffers import Buffer
from opendml.frontends.directml.compiled import CompiledOperator
from opendml.frontends.directml.elementwise import *  # noqa: F403 - its `__all__`
from opendml.frontends.directml.gradients import *  # noqa: F403 - its `__all__`
from opendml.frontends.directml.graphs import Graph
from opendml.frontends.directml.movement import *  # noqa: F403 - its `__all__`
from opendml.frontends.directml.networks import *  # noqa: F403 - its `__all__`
from opendml.frontends.directml.reductions import *  # noqa: F403 - its `__all__`
from opendml.frontends.directml.sizes import Sizes
from opendml.frontends.directml.tensors import Expression
from opendml.frontends.pydirectml import devices, expressions, functions
from opendml.frontends.pydirectml.enumerations import (
    AxisDirection,
    ConvolutionDirection,
    ConvolutionMode,
    DepthSpaceOrder,
    ExecutionFlags,
    InterpolationMode,
    IsInfinityMode,
    MatrixTransform,
    OperatorType,
    OutputOptions,
    PaddingMode,
    QuantizationType,
    RandomGeneratorType,
    RecurrentNetworkDirection,
    ReduceFunction,
    RoundingMode,
    TensorDataType,
    TensorFlags,
)
from opendml.frontends.pydirectml.enumerations import OutputOptions as GRUOutputOptions
from opendml.frontends.pydirectml.functions import Size2D
from opendml.frontends.pydirectml.tensors import TensorDesc, TensorPolicy

__all__ = [
    "AxisDirection",
    "Binding",
    "Buffer",
    "CompiledOperator",
    "ConvolutionDirection",
    "ConvolutionMode",
    "DepthSpaceOrder",
    "Device",
    "ExecutionFlags",
    "Expression",
    "GRUOutputOptions",
    "Graph",
    "GraphBuilder",
    "InterpolationMode",
    "IsInfinityMode",
    "MatrixTransform",
    "Model",
    "OperatorType",
    "OutputOptions",
    "PaddingMode",
    "QuantizationType",
    "RandomGeneratorType",
    "RecurrentNetworkDirection",
    "ReduceFunction",
    "RoundingMode",
    "Size2D",
    "TensorData",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorPolicy",
    "input_tensor",
    "up_sample_2d",
]
for _family in (activations, elementwise, gradients, movement, networks, reductions):
    __all__ += _family.__all__


class TensorData(devices.TensorData):
    __doc__ = devices.TensorData.__doc__

    def __new__(cls, data: Any = None) -> TensorData:
        raise TypeError("directml.TensorData: no constructor; Device.compute and dispatch make it")


class Binding(devices.Binding):
    """An array for an input, copied, of the type of its tensor.

    Args:
        expr: the input.
        data: an array, of which only the elements in row-major order count, not the shape. It may be narrowed
            within a kind, as float64 to float32, and cast as NumPy calls it safe.

    Raises:
        ValueError: an array that would be cast otherwise.
    """

    _is_strict = True


class Model(Sizes, devices.Model):
    """A compiled graph, which is initialized once."""

    data = TensorData


class Device(devices.Device):
    __doc__ = devices.Device.__doc__

    def compute(
        self,
        model: Model,
        inputs: Sequence[devices.Binding | None],
        outputs: Sequence[expressions.Expression | None],
    ) -> list[devices.TensorData]:
        """The outputs, in the order of `build`; the first call initializes the model.

        Args:
            model: what is run.
            inputs: a binding for each input, in their order.
            outputs: what the model was built for; None: it is left out of the results.

        Raises:
            ValueError: too few of them, or data of another size.
        """
        if model._bound is None:
            model._initialize(inputs)
        return model._dispatch(inputs, outputs)

    def initialize(self, model: Model, inputs: Sequence[devices.Binding | None]) -> None:
        """Hands over the inputs that are OWNED_BY_DML, again if it was done before."""
        model._initialize(inputs)

    def dispatch(
        self,
        model: Model,
        inputs: Sequence[devices.Binding | None],
        outputs: Sequence[expressions.Expression | None],
    ) -> list[devices.TensorData]:
        """The outputs of a model that is initialized; of its inputs only those are read that are not
        OWNED_BY_DML."""
        return model._dispatch(inputs, outputs)


class _InPlaceExpression(expressions.InPlace, Expression):
    __doc__ = Expression.__doc__


_InPlaceExpression.__name__ = Expression.__name__


class GraphBuilder(devices.GraphBuilder):
    __doc__ = devices.GraphBuilder.__doc__
    expression = _InPlaceExpression
    model = Model


def input_tensor(scope: GraphBuilder, input_index: int, tensor_desc: TensorDesc) -> Expression:
    """An input of the graph; bindings are given in the order of `input_index`."""
    return typing.cast(Expression, functions.input_tensor(scope, input_index, tensor_desc))


def up_sample_2d(input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode) -> Expression:
    """UPSAMPLE_2D, as it was called before."""
    return typing.cast(Expression, functions.up_sample_2d(input, scale_size, interpolation_mode))
