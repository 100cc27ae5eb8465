"""Adaptations of calls that a row of the table cannot express.

Each function here serves the function of its name. It changes the arguments of a call, which have the names
of the immediate function's arguments. It may return another operator than the row's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opendml.frontends.pydirectml.activations import activation_desc
from opendml.frontends.pydirectml.enumerations import (
    OutputOptions,
    QuantizationType,
    as_data_type,
    numpy_type,
)
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.expressions import Expression, Scope, known, member, record, truth
from opendml.spec.enums import ConvolutionDirection
from opendml.spec.wording import shown

Given = dict[str, Any]
_Adaptation = Callable[[Given], str | None]

ADAPTED: dict[str, _Adaptation] = {}
"""The functions of this module by the names of those that they serve."""


def _adapts(adapt: _Adaptation) -> _Adaptation:
    ADAPTED[adapt.__name__.removeprefix("_")] = adapt
    return adapt


def _sizes(given: Given, function: str, argument: str) -> tuple[int, ...]:
    return known(given[argument], f"{function}.{argument}")._desc.sizes


@_adapts
def _add(given: Given) -> str | None:
    """Take the operator without an activation if none is given: it takes more types."""
    if activation_desc(given["fused_activation"]) is not None:
        return None
    del given["fused_activation"]
    return "ELEMENT_WISE_ADD"


@_adapts
def _activation_softmax(given: Given) -> str | None:
    """Take the older operator if no axes are given: it works on the last of two dimensions."""
    if given["axes"] is not None and len(given["axes"]):
        return None
    del given["axes"]
    return "ACTIVATION_SOFTMAX"


@_adapts
def _pow(given: Given) -> str | None:
    """Take the operator with one exponent for all elements if it is a number."""
    return None if isinstance(given["exponent"], Expression) else "ELEMENT_WISE_CONSTANT_POW"


@_adapts
def _convolution(given: Given) -> None:
    """Turn sizes of a transposed convolution that are larger than usual into output padding."""
    sizes, is_forward = given["sizes"], given["direction"] is not ConvolutionDirection.BACKWARD
    if is_forward or len(sizes) == 0 or any(given["output_padding"]):
        return
    # The graph drops what no output needs, as this convolution of the usual sizes.
    usual = record("CONVOLUTION", {**given, "sizes": ()}, function="convolution")[0]._desc.sizes
    more = [wanted - size for wanted, size in zip(sizes[2:], usual[2:], strict=False)]
    if len(sizes) == len(usual) and any(more) and min(more) >= 0:
        given["output_padding"] = more


@_adapts
def _dequantize(given: Given) -> None:
    """Give unsigned numbers without a zero point the middle of their range: directml means that by none."""
    parameters, input = list(given.pop("quantization_parameters")), known(given["input"], "dequantize.input")
    dtype = numpy_type(input._desc.data_type)
    if given["quantization_type"] is QuantizationType.SCALE and len(parameters) == 1 and dtype.kind == "u":
        scale = known(parameters[0], "dequantize.quantization_parameters")
        middle = {
            "value": 1 << (8 * dtype.itemsize - 1),
            "value_data_type": dtype,
            "sizes": scale._desc.sizes,
        }
        parameters += record("FILL_VALUE_CONSTANT", middle, scope=input._scope)
        given["quantization_type"] = QuantizationType.SCALE_ZERO_POINT
    given["quantizations"] = parameters


@_adapts
def _fill_value_constant(given: Given) -> None:
    """Convert the numbers to the type, FLOAT32 if none is given."""
    if not isinstance(given["graph"], Scope):
        raise TypeError(f"graph: {type(given['graph']).__name__}; a Graph is needed")
    data_type = as_data_type(np.float32 if given["value_data_type"] is None else given["value_data_type"])
    given["value_data_type"], dtype = data_type, numpy_type(data_type)
    for name in given.keys() & {"value", "value_start", "value_delta"}:
        try:
            given[name] = np.array(given[name], dtype).item()
        except (OverflowError, TypeError, ValueError) as error:
            raise Refused(f"{name}={given[name]!r}: no {dtype.name} ({error})") from error


ADAPTED["fill_value_sequence"] = _fill_value_constant


@_adapts
def _gru(given: Given) -> None:
    """Turn the output options into the two optional outputs."""
    option = member(OutputOptions, given.pop("output_options"), "gru.output_options")
    given["output_sequence"] = option != OutputOptions.Single
    given["output_single"] = option != OutputOptions.Sequence


@_adapts
def _one_hot(given: Given) -> None:
    """Take the sizes of the indices, with the length along the axis."""
    sizes, axis = list(_sizes(given, "one_hot", "indices")), given["axis"]
    if not isinstance(axis, int) or not -len(sizes) <= axis < len(sizes):
        raise Refused(f"one_hot.axis: {shown(axis)}; the indices have {len(sizes)} dimensions")
    sizes[axis] = given.pop("output_length")
    given["sizes"] = sizes


@_adapts
def _reduce(given: Given) -> None:
    """Reduce all axes if none are given."""
    if len(given["axes"]) == 0:
        given["axes"] = range(len(_sizes(given, "reduce", "input")))


@_adapts
def _resample(given: Given) -> None:
    """Take the scales that follow from the sizes if none are given."""
    if len(given["scales"]) == 0:
        pairs = zip(_sizes(given, "resample", "input"), given["sizes"], strict=False)
        given["scales"] = [wanted / size for size, wanted in pairs]


@_adapts
def _resample_grad(given: Given) -> None:
    """Take the scales that follow from the sizes if none are given."""
    if len(given["scales"]) == 0:
        pairs = zip(given["sizes"], _sizes(given, "resample_grad", "input_gradient"), strict=False)
        given["scales"] = [large / size for size, large in pairs]


@_adapts
def _roi_align(given: Given) -> None:
    """Take the number of regions, the channels and the size of the output as its sizes."""
    regions = _sizes(given, "roi_align", "roi")[-2:-1]
    channels = _sizes(given, "roi_align", "input")[1:2]
    given["sizes"] = (*regions, *channels, given.pop("output_height"), given.pop("output_width"))


@_adapts
def _roi_align_grad(given: Given) -> None:
    """Take the batch, the channels and the size of the image as the sizes."""
    names = [f"compute_{each}" for each in ("output_gradient", "output_roi_gradient")]
    if not any(truth(given[each.removeprefix("compute_")], f"roi_align_grad.{each}") for each in names):
        raise Refused(f"roi_align_grad: neither gradient is asked for; {' or '.join(names)} is needed")
    channels = _sizes(given, "roi_align_grad", "input_gradient")[1:2]
    image = given.pop("image_height"), given.pop("image_width")
    given["sizes"] = (given.pop("batch_size"), *channels, *image)
