"""Microsoft's `pydirectml`, for any machine: `import opendml.pydirectml as dml`.

`python -m opendml.pydirectml SCRIPT.py ARGS` runs a script that says `import pydirectml` (or `import
directml`) as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendml.frontends.pydirectml import devices, enumerations, expressions, functions, names
from opendml.frontends.pydirectml.activations import NO_ACTIVATION, FusedActivation
from opendml.frontends.pydirectml.devices import Binding, Model, TensorData
from opendml.frontends.pydirectml.expressions import one
from opendml.frontends.pydirectml.functions import REQUIRED
from opendml.frontends.pydirectml.names import *  # noqa: F403 - `names.__all__`

__all__ = [
    "Binding",
    "Device",
    "Dimensions",
    "Expression",
    "GraphBuilder",
    "Model",
    "TensorData",
    "activation_soft_max",
    "average_pooling",
    "mean_variance_normalization",
]
__all__ += names.__all__

# The values of enumerations are names of the module too; of those that collide the last one stays.
for _enumeration in (
    enumerations.TensorDataType,
    enumerations.TensorFlags,
    enumerations.MatrixTransform,
    enumerations.RecurrentNetworkDirection,
    enumerations.ConvolutionMode,
    enumerations.ConvolutionDirection,
    enumerations.InterpolationMode,
    enumerations.PaddingMode,
    enumerations.ExecutionFlags,
    enumerations.OperatorType,
):
    globals().update(_enumeration.__members__)


class Dimensions(list[int]):
    """Sizes; a list of integers is as good."""


class Expression(expressions.InPlace):
    __doc__ = expressions.Expression.__doc__


class Device(devices.Device):
    __doc__ = devices.Device.__doc__

    def compute(
        self,
        model: Model,
        inputs: Sequence[Binding | None],
        outputs: Sequence[expressions.Expression | None],
        /,
    ) -> list[TensorData]:
        """The outputs, in the order of `build`.

        Args:
            model: what is run; it is initialized each time.
            inputs: a binding for each input, in their order.
            outputs: what the model was built for; None: it is left out of the results.

        Raises:
            ValueError: too few of them, or data of another size.
        """
        model._initialize(inputs)
        return model._dispatch(inputs, outputs)


class GraphBuilder(devices.GraphBuilder):
    __doc__ = devices.GraphBuilder.__doc__
    expression = Expression


def activation_soft_max(input: expressions.Expression) -> expressions.Expression:
    """ACTIVATION_SOFTMAX."""
    return one("ACTIVATION_SOFTMAX", {"input": input})


def mean_variance_normalization(
    input: expressions.Expression,
    scale: expressions.Expression | None = None,
    bias: expressions.Expression | None = None,
    axes: Sequence[int] = (),
    normalize_variance: bool = REQUIRED,
    epsilon: float = REQUIRED,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> expressions.Expression:
    """MEAN_VARIANCE_NORMALIZATION1."""
    functions.require("mean_variance_normalization", normalize_variance=normalize_variance, epsilon=epsilon)
    tensors = {"input": input, "scale": scale, "bias": bias}
    normalize = {"normalize_variance": bool(normalize_variance)}
    return functions.mean_variance(tensors, axes, epsilon, fused_activation, **normalize)


def average_pooling(
    input: expressions.Expression,
    strides: Sequence[int],
    window_sizes: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    include_padding: bool,
) -> expressions.Expression:
    """AVERAGE_POOLING."""
    return functions.pooled_average(input, strides, window_sizes, start_padding, end_padding, include_padding)
