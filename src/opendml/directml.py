"""The fork of PyDirectML that is called `directml`, for any machine: `import opendml.directml as dml`.

`python -m opendml.pydirectml SCRIPT.py ARGS` runs a script that says `import directml` as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.frontends.pydirectml import devices, expressions, functions, names
from opendml.frontends.pydirectml.activations import NO_ACTIVATION, FusedActivation
from opendml.frontends.pydirectml.expressions import one
from opendml.frontends.pydirectml.functions import REQUIRED
from opendml.frontends.pydirectml.names import *  # noqa: F403 - `names.__all__`

__all__ = [
    "Binding",
    "Device",
    "Expression",
    "GraphBuilder",
    "Model",
    "TensorData",
    "activation_gelu",
    "activation_softmax",
    "average_pooling",
    "mean_variance_normalization",
]
__all__ += names.__all__


def __getattr__(name: str) -> Any:
    if name in ("Graph", "Buffer", "CompiledOperator"):
        raise AttributeError(
            f"directml.{name}: of the fork's newest interface; this is the one before it, with GraphBuilder, "
            "Binding and Device.compute. opendml.Graph is like the newest one"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Expression(expressions.Expression):
    __doc__ = expressions.Expression.__doc__

    def __init__(self) -> None:
        raise TypeError("directml.Expression: no constructor; input_tensor and operators make expressions")


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


class Model(devices.Model):
    """A compiled graph, which is initialized once."""

    data = TensorData

    @property
    def temporary_size(self) -> int:
        """The bytes that a dispatch needs for what it computes on the way."""
        return self._compiled.binding_properties.temporary_resource_size

    @property
    def persistent_size(self) -> int:
        """The bytes that the tensors which are OWNED_BY_DML take."""
        return self._compiled.binding_properties.persistent_resource_size

    @property
    def descriptor_count(self) -> int:
        """The descriptors that a dispatch of DirectML would bind."""
        return self._compiled.binding_properties.required_descriptor_count


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
            InvalidArgument: too few of them, or data of another size.
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


class GraphBuilder(devices.GraphBuilder):
    __doc__ = devices.GraphBuilder.__doc__
    expression = Expression
    model = Model


def activation_gelu(input: expressions.Expression) -> expressions.Expression:
    """ACTIVATION_GELU, the exact form."""
    return one("ACTIVATION_GELU", {"input": input})


def activation_softmax(input: expressions.Expression, axes: Sequence[int] = ()) -> expressions.Expression:
    """ACTIVATION_SOFTMAX1 over `axes`; without any ACTIVATION_SOFTMAX, over the last of two dimensions."""
    if not axes:
        return one("ACTIVATION_SOFTMAX", {"input": input})
    return one("ACTIVATION_SOFTMAX1", {"input": input}, {"axes": tuple(axes)})


def mean_variance_normalization(
    input: expressions.Expression,
    scale: expressions.Expression | None = None,
    bias: expressions.Expression | None = None,
    axes: Sequence[int] = (),
    normalize_variance: bool = REQUIRED,
    normalize_mean: bool = REQUIRED,
    epsilon: float = REQUIRED,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> expressions.Expression:
    """MEAN_VARIANCE_NORMALIZATION2."""
    given = {"normalize_variance": normalize_variance, "normalize_mean": normalize_mean, "epsilon": epsilon}
    functions.require("mean_variance_normalization", **given)
    tensors = {"input": input, "scale": scale, "bias": bias}
    use = {"use_mean": bool(normalize_mean), "use_variance": bool(normalize_variance)}
    return functions.mean_variance(tensors, axes, epsilon, fused_activation, **use)


def average_pooling(
    input: expressions.Expression,
    strides: Sequence[int],
    window_sizes: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    dilations: Sequence[int],
    include_padding: bool,
) -> expressions.Expression:
    """AVERAGE_POOLING1."""
    return functions.pooled_average(
        input, strides, window_sizes, start_padding, end_padding, include_padding, dilations
    )
