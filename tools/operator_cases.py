"""Calls of every public operator in sizes that networks have, for the table of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opendml import descs
from opendml.operators.registry import implemented
from opendml.spec.enums import (
    AxisDirection,
    InterpolationMode,
    PaddingMode,
    QuantizationType,
    RecurrentNetworkDirection,
    ReduceFunction,
)
from opendml.spec.operator_desc import ScaleBias, Size2D
from opendml.spec.schema import operator
from tools.contraction_cases import contraction_forms, windows
from tools.operator_case import Form, Strided, Typed

IMAGES = (8, 64, 56, 56)
CHANNELS = (1, 64, 1, 1)
TOKENS = (8, 128, 768)
SQUARE = (1024, 1024)
_INDICES = {"indices": "INT64"}
_ELEMENTS = (
    "ACTIVATION_PARAMETERIZED_RELU",
    "ACTIVATION_RELU_GRAD",
    "CAST",
)
"""Element-wise operators whose names have none of the usual prefixes."""
_SOFTMAXES = ("SOFTMAX", "LOG_SOFTMAX", "HARDMAX")
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "ACTIVATION_CELU": {"alpha": 0.7},
    "ACTIVATION_ELU": {"alpha": 0.7},
    "ACTIVATION_HARD_SIGMOID": {"alpha": 0.2, "beta": 0.5},
    "ACTIVATION_HARD_SWISH": {"alpha": 1 / 6, "beta": 0.5},
    "ACTIVATION_LEAKY_RELU": {"alpha": 0.01},
    "ACTIVATION_LINEAR": {"alpha": 0.7, "beta": -1.3},
    "ACTIVATION_PARAMETRIC_SOFTPLUS": {"alpha": 0.7, "beta": 0.3},
    "ACTIVATION_SCALED_ELU": {"alpha": 1.67, "gamma": 1.05},
    "ACTIVATION_SCALED_TANH": {"alpha": 1.7, "beta": 0.6},
    "ACTIVATION_SHRINK": {"bias": 1.5, "threshold": 2.5},
    "ACTIVATION_SOFTPLUS": {"steepness": 1.7},
    "ACTIVATION_SWISH": {"sigmoid_input_scale": 1.7},
    "ACTIVATION_THRESHOLDED_RELU": {"alpha": 0.7},
    "ELEMENT_WISE_CLIP": {"min": 1.75, "max": 40.5},
    "ELEMENT_WISE_CLIP1": {"min": 2, "max": 40},
    "ELEMENT_WISE_CLIP_GRAD": {"min": 1.0, "max": 40.0},
    "ELEMENT_WISE_CLIP_GRAD1": {"min": 2, "max": 40},
    "ELEMENT_WISE_CONSTANT_POW": {"exponent": 2.5},
    "ELEMENT_WISE_THRESHOLD": {"min": 3.5},
}
"""Attributes of element-wise operators that have no default."""
_ADDED_ACTIVATIONS = {"fused_activation": descs.ActivationRelu()}


def all_forms() -> Iterator[Form]:
    """Yield the forms of every operator, contractions first."""
    yield from contraction_forms()
    for family in (
        *(_elements, _broadcasts, _softmaxes, _quantizations, _fillings, _reductions, _scans),
        *(_normalizations, _normalization_gradients, _poolings, _recurrences, _movements, _indexings),
        *(_scatterings, _samplings, _regions, _others),
    ):
        yield from family()


def element_operators() -> list[str]:
    """Return the element-wise operators, but for those that quantize."""
    excluded = {f"ACTIVATION_{name}{number}" for name in _SOFTMAXES for number in ("", "1")}
    names = (name for name in implemented() if name.startswith(("ACTIVATION_", "ELEMENT_WISE_")))
    quantizing = [name for name in implemented() if "QUANTIZE" in name]
    return sorted(({*names, *_ELEMENTS} - excluded) - {*quantizing})


def _elements() -> Iterator[Form]:
    for name in element_operators():
        tensors = {each.argument_name: IMAGES for each in operator(name).inputs}
        types: dict[str, Any] = {}
        if name == "CAST":
            supported = operator(name).support[0].tensors["InputTensor"].types
            types["output"] = {type: "FLOAT16" if type == "FLOAT32" else "FLOAT32" for type in supported}
        yield Form(name, "8x64x56x56", tensors, _ATTRIBUTES.get(name, {}), types=types)


def _broadcasts() -> Iterator[Form]:
    floats = ("FLOAT32", "FLOAT16")
    row = Strided(TOKENS, (0, 0, 1))
    channels = Strided(IMAGES, (0, 1, 0, 0))
    nhwc = Strided(IMAGES, (56 * 56 * 64, 1, 56 * 64, 64))
    yield Form("ELEMENT_WISE_ADD", "8x128x768 and a row", {"a": TOKENS, "b": row}, only=floats)
    yield Form("ELEMENT_WISE_MULTIPLY", "images and channels", {"a": IMAGES, "b": channels}, only=floats)
    yield Form("ELEMENT_WISE_IDENTITY", "images from NHWC", {"input": nhwc}, only=(*floats, "UINT8"))
    scaled = {"scale_bias": ScaleBias(0.5, 2.0)}
    yield Form("ELEMENT_WISE_IDENTITY", "scaled", {"input": IMAGES}, scaled, only=floats)
    yield Form("CAST", "FLOAT32 to UINT8", {"input": IMAGES}, types={"output": "UINT8"}, only=("FLOAT32",))


def _softmaxes() -> Iterator[Form]:
    for name in _SOFTMAXES:
        yield Form(f"ACTIVATION_{name}", "1024 rows of 1000", {"input": (1, 1, 1024, 1000)})
        for sizes, axis in (((96, 128, 128), 2), ((8, 21, 128, 128), 1)):
            over = f"{'x'.join(map(str, sizes))} over {axis}"
            yield Form(f"ACTIVATION_{name}1", over, {"input": sizes}, {"axes": (axis,)})


def _quantizations() -> Iterator[Form]:
    one = Strided(IMAGES, (0, 0, 0, 0))
    scales = {"scale": one, "zero_point": one}
    yield Form("ELEMENT_WISE_QUANTIZE_LINEAR", "images", {"input": IMAGES, **scales})
    yield Form("ELEMENT_WISE_DEQUANTIZE_LINEAR", "images", {"input": IMAGES, **scales})
    names = [each.argument_name for each in operator("ELEMENT_WISE_QUANTIZED_LINEAR_ADD").inputs]
    small = {name: (1, 1, 1, 1) for name in names if "scale" in name or "zero" in name}
    yield Form("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", "images", {"a": IMAGES, "b": IMAGES, **small})
    yield Form("DYNAMIC_QUANTIZE_LINEAR", "images", {"input": IMAGES}, wanted=frozenset(("output_tensor",)))
    kind = {"quantization_type": QuantizationType.SCALE_ZERO_POINT}
    blocks = (3072, 768 // 32)
    for type in ("INT8", "INT4", "UINT8", "UINT4"):
        rows = [Typed(blocks, "FLOAT32"), Typed(blocks, type)]
        sizes = {"input": (3072, 768), "quantizations": rows}
        yield Form("DEQUANTIZE", "3072x768, blocks of 32", sizes, kind, only=(type,))
        name = f"3072x768, blocks of 32, to {type}"
        yield Form("QUANTIZE", name, sizes, kind, only=("FLOAT32",))
        halves = [Typed(blocks, "FLOAT16"), Typed(blocks, type)]
        yield Form("QUANTIZE", name, sizes | {"quantizations": halves}, kind, only=("FLOAT16",))


def _fillings() -> Iterator[Form]:
    yield Form("FILL_VALUE_CONSTANT", "images", {"output": IMAGES}, {"value": 7})
    yield Form(
        "FILL_VALUE_SEQUENCE", "a million", {"output": (1000, 1000)}, _of("value_start", 7, "value_delta", 3)
    )
    yield Form("DIAGONAL_MATRIX", "1024x1024", {"output": SQUARE})
    band = _of("value", 0, "diagonal_fill_begin", 1, "diagonal_fill_end", 1024)
    yield Form("DIAGONAL_MATRIX1", "upper triangle of 1024x1024", {"input": SQUARE}, band)


def _of(*pairs: Any) -> dict[str, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _reductions() -> Iterator[Form]:
    for function in ReduceFunction:
        for sizes, axes in (((1000, 512), (1,)), (IMAGES, (2, 3)), ((4096, 1024), (0,))):
            name = f"{function.name} of {'x'.join(map(str, sizes))} over {','.join(map(str, axes))}"
            yield Form("REDUCE", name, {"input": sizes}, {"function": function, "axes": axes})
            if function is not ReduceFunction.SUM:
                break
    for name in ("ARGMAX", "ARGMIN"):
        yield Form(name, "1000x512 over 1", {"input": (1000, 512)}, {"axes": (1,)})


def _scans() -> Iterator[Form]:
    for name in ("CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT"):
        for axis in (0, 1):
            yield Form(name, f"1024x1024 along {axis}", {"input": SQUARE}, {"axis": axis})


def _normalizations() -> Iterator[Form]:
    statistics = dict.fromkeys(("mean", "variance", "scale", "bias"), CHANNELS)
    epsilon = {"epsilon": 1e-5}
    yield Form("BATCH_NORMALIZATION", "images", {"input": IMAGES, **statistics}, epsilon)
    yield Form(
        "BATCH_NORMALIZATION", "images, relu", {"input": IMAGES, **statistics}, epsilon | _ADDED_ACTIVATIONS
    )
    trained = {"input": IMAGES, "scale": CHANNELS, "bias": CHANNELS}
    yield Form("BATCH_NORMALIZATION_TRAINING", "images", trained, epsilon)
    yield Form("MEAN_VARIANCE_NORMALIZATION", "images", {"input": IMAGES})
    row = (1, 1, 768)
    for number in (1, 2):
        name = f"MEAN_VARIANCE_NORMALIZATION{number}"
        tokens = {"input": TOKENS, "scale": row, "bias": row}
        yield Form(name, "8x128x768 over 2", tokens, {"axes": (2,)})
        images = {"input": IMAGES, "scale": CHANNELS, "bias": CHANNELS}
        yield Form(name, "images over 2,3, relu", images, {"axes": (2, 3)} | _ADDED_ACTIVATIONS)
    groups = {"input": (8, 32, 2, 56, 56)}
    yield Form("MEAN_VARIANCE_NORMALIZATION2", "32 groups of channels", groups, {"axes": (2, 3, 4)})
    squares = {"input": TOKENS, "scale": row}
    yield Form("MEAN_VARIANCE_NORMALIZATION2", "by squares", squares, {"axes": (2,), "use_mean": False})
    yield Form("LP_NORMALIZATION", "1000x512 along 1", {"input": (1000, 512)}, {"axis": 1, "p": 2})
    for across in (True, False):
        attributes = {"cross_channel": across, "local_size": 5}
        name = "images, across channels" if across else "images, within channels"
        yield Form("LOCAL_RESPONSE_NORMALIZATION", name, {"input": IMAGES}, attributes)


def _normalization_gradients() -> Iterator[Form]:
    both = {"input": IMAGES, "input_gradient": IMAGES}
    statistics = dict.fromkeys(("mean", "variance", "scale"), CHANNELS)
    for name in ("BATCH_NORMALIZATION_GRAD", "BATCH_NORMALIZATION_TRAINING_GRAD"):
        yield Form(name, "images", both | statistics, {"epsilon": 1e-5})
    attributes = {"cross_channel": True, "local_size": 5}
    yield Form("LOCAL_RESPONSE_NORMALIZATION_GRAD", "images, across channels", both, attributes)
    moments = ("input_parameters", "input_first_moment", "input_second_moment", "gradient")
    tensors = dict.fromkeys(moments, (1, 1, 1, 1_000_000)) | {"training_step": (1, 1, 1, 1)}
    yield Form("ADAM_OPTIMIZER", "a million", tensors, {"learning_rate": 1e-3})


def _window(side: int, stride: int, *without: str) -> dict[str, Any]:
    attributes = windows(side, stride) | {"window_size": (side, side)}
    return {name: value for name, value in attributes.items() if name not in without}


def _poolings() -> Iterator[Form]:
    images, pooled = {"input": (8, 64, 112, 112)}, (8, 64, 56, 56)
    plain = _window(3, 2, "dilations")
    included, by_squares = {"include_padding": False}, {"p": 2}
    name = "3x3, stride 2, of 112x112"
    yield Form("AVERAGE_POOLING", name, images, plain | included)
    yield Form("AVERAGE_POOLING1", name, images, _window(3, 2) | included)
    whole = {"strides": (1, 1), "dilations": (1, 1), "start_padding": (0, 0), "end_padding": (0, 0)}
    whole |= {"window_size": (7, 7)}
    yield Form("AVERAGE_POOLING1", "all of 7x7", {"input": (8, 2048, 7, 7)}, whole | included)
    yield Form("LP_POOLING", name, images, plain | by_squares)
    yield Form("LP_POOLING1", name, images, _window(3, 2) | by_squares)
    yield Form("MAX_POOLING", name, images, plain)
    for number, attributes in (("1", plain), ("2", _window(3, 2))):
        yield Form(f"MAX_POOLING{number}", name, images, attributes)
        indices = frozenset(("output_indices_tensor",))
        yield Form(f"MAX_POOLING{number}", f"{name}, positions", images, attributes, wanted=indices)
    one = (1, 1, 1, 1)
    scales = dict.fromkeys(("input_scale", "input_zero_point", "output_scale", "output_zero_point"), one)
    yield Form("QUANTIZED_LINEAR_AVERAGE_POOLING", name, images | scales, _window(3, 2) | included)
    yield Form(
        "AVERAGE_POOLING_GRAD",
        name,
        {"input_gradient": pooled},
        plain | included,
        sizes=images["input"],
    )
    gradients = images | {"input_gradient": pooled}
    yield Form("MAX_POOLING_GRAD", name, gradients, _window(3, 2))
    positions = {"input": pooled, "indices": pooled}
    yield Form("MAX_UNPOOLING", "2x2 to 112x112", positions, sizes=images["input"])


def _recurrences() -> Iterator[Form]:
    steps, batch, hidden = 16, 8, 256
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        tensors = {
            "input": (1, steps, batch, hidden),
            "weight": (1, 1, gates * hidden, hidden),
            "recurrence": (1, 1, gates * hidden, hidden),
            "bias": (1, 1, 1, 2 * gates * hidden),
        }
        tensors["weight"] = tensors["recurrence"] = (1, 1, gates * hidden, hidden)
        own = {
            "RNN": [descs.ActivationTanh()],
            "GRU": [descs.ActivationSigmoid(), descs.ActivationTanh()],
            "LSTM": [descs.ActivationSigmoid(), descs.ActivationTanh(), descs.ActivationTanh()],
        }[name]
        attributes = {"direction": RecurrentNetworkDirection.FORWARD, "activation_descs": own}
        attributes |= {"linear_before_reset": True} if name == "GRU" else {}
        title = f"{steps} steps, batch {batch}, {hidden} units"
        yield Form(name, title, tensors, attributes, wanted=frozenset(("output_sequence_tensor",)))


def _movements() -> Iterator[Form]:
    for number in ("", "1"):
        yield Form(f"DEPTH_TO_SPACE{number}", "images by 2", {"input": IMAGES}, {"block_size": 2})
        yield Form(f"SPACE_TO_DEPTH{number}", "images by 2", {"input": IMAGES}, {"block_size": 2})
    three = [(8, 32, 56, 56), (8, 64, 56, 56), (8, 32, 56, 56)]
    yield Form("JOIN", "three tensors along channels", {"inputs": three}, {"axis": 1})
    yield Form("SPLIT", "in three along channels", {"input": IMAGES}, {"axis": 1}, sizes=(16, 32, 16))
    margins = {"start_padding": (0, 0, 1, 1), "end_padding": (0, 0, 1, 1)}
    constant = {"padding_mode": PaddingMode.CONSTANT, "padding_value": 0}
    yield Form("PADDING", "images by 1", {"input": IMAGES}, margins)
    reflected = margins | {"padding_mode": PaddingMode.REFLECTION}
    yield Form("PADDING", "images by 1, reflected", {"input": IMAGES}, reflected, only=("FLOAT32", "FLOAT16"))
    yield Form("PADDING1", "images by 1", {"input": IMAGES}, margins | constant)
    inner = {"offsets": (0, 0, 4, 4), "sizes": (8, 64, 48, 48), "strides": (1, 1, 1, 1)}
    yield Form("SLICE", "inner 48x48", {"input": IMAGES}, inner)
    window = {
        "input_window_offsets": (0, 0, 4, 4),
        "input_window_sizes": (8, 64, 48, 48),
        "input_window_strides": (1, 1, 1, 1),
    }
    yield Form("SLICE1", "inner 48x48", {"input": IMAGES}, window)
    yield Form("SLICE_GRAD", "inner 48x48", {"input_gradient": (8, 64, 48, 48)}, window, sizes=IMAGES)
    yield Form("TILE", "images twice", {"input": IMAGES}, {"repeats": (1, 2, 1, 1)})
    columns = windows(3, 1) | {"window_sizes": (3, 3)}
    yield Form("UNFOLD", "3x3", {"input": IMAGES}, columns)
    yield Form("FOLD", "3x3", {"input": (8, 576, 56 * 56)}, columns, sizes=IMAGES)
    lengths = {"input": (512, 128, 64), "sequence_lengths": (512, 1, 64)}
    yield Form("REVERSE_SUBSEQUENCES", "along 1", lengths, {"axis": 1}, types={"sequence_lengths": "UINT32"})


def _indexings() -> Iterator[Form]:
    rows = {"input": (30_000, 768), "indices": (1, 1024)}
    attributes = {"axis": 0, "index_dimensions": 1}
    yield Form("GATHER", "1024 rows of 768", rows, attributes, types=_INDICES)
    for axis in (0, 1):
        square = {"input": SQUARE, "indices": SQUARE}
        yield Form("GATHER_ELEMENTS", f"1024x1024 along {axis}", square, {"axis": axis}, types=_INDICES)
    tuples = {"input": (64, 64, 768), "indices": (1, 1024, 2)}
    counts = {"input_dimension_count": 3, "indices_dimension_count": 2}
    for number, further in (("", {}), ("1", {"batch_dimension_count": 0})):
        yield Form(f"GATHER_ND{number}", "1024 rows of 768", tuples, counts | further, types=_INDICES)
    hot = {"indices": (4096, 1), "values": (1, 2)}
    yield Form("ONE_HOT", "4096 of 1000", hot, {"axis": 1}, sizes=(4096, 1000), types={"values": "FLOAT32"})
    indices = ("INT64",)
    for type in operator("ONE_HOT").support[0].tensors["ValuesTensor"].types:
        if type != "FLOAT32":
            name = f"4096 of 1000, {type}"
            yield Form("ONE_HOT", name, hot, {"axis": 1}, (4096, 1000), types={"values": type}, only=indices)
    yield Form("NONZERO_COORDINATES", "1024x1024", {"input": SQUARE})
    for number in ("", "1"):
        yield Form(f"TOP_K{number}", "5 of 1000", {"input": (1024, 1000)}, {"axis": 1, "k": 5})


def _scatterings() -> Iterator[Form]:
    square = dict.fromkeys(("input", "indices", "updates"), SQUARE)
    for axis in (0, 1):
        yield Form("SCATTER", f"1024x1024 along {axis}", square, {"axis": axis}, types=_INDICES)
    tuples = {"input": (20_000, 256), "indices": (8192, 1), "updates": (8192, 256)}
    counts = {"input_dimension_count": 2, "indices_dimension_count": 2}
    yield Form("SCATTER_ND", "8192 rows of 256", tuples, counts, types=_INDICES)


def _samplings() -> Iterator[Form]:
    images, large = {"input": IMAGES}, (8, 64, 112, 112)
    twice: dict[str, Any] = {"scales": (1.0, 1.0, 2.0, 2.0)}
    offsets = {"input_pixel_offsets": (0.5,) * 4, "output_pixel_offsets": (-0.5,) * 4}
    rounded = {"rounding_direction": AxisDirection.INCREASING}
    further: dict[str, dict[str, Any]] = {
        "": {},
        "1": offsets,
        "2": offsets | rounded,
        "3": offsets | rounded | {"antialiased": False},
    }
    for mode in InterpolationMode:
        kind = {"interpolation_mode": mode} | twice
        name = f"images by 2, {mode.name.lower()}"
        for number, more in further.items():
            yield Form(f"RESAMPLE{number}", name, images, kind | more, sizes=large)
        for number, more in (("", offsets), ("1", offsets | rounded)):
            gradient = {"input_gradient": large}
            yield Form(f"RESAMPLE_GRAD{number}", name, gradient, kind | more, sizes=IMAGES)
        scaled = {"scale_size": Size2D(2, 2), "interpolation_mode": mode}
        yield Form("UPSAMPLE_2D", name, images, scaled)
    smooth = {"interpolation_mode": InterpolationMode.LINEAR, "antialiased": True} | offsets | rounded
    half = {"scales": (1.0, 1.0, 0.5, 0.5)}
    yield Form("RESAMPLE3", "images by half, smooth", images, smooth | half, sizes=(8, 64, 28, 28))
    colours = {"scale": 0.5, "bias": (0.1, 0.2, 0.3)}
    yield Form("VALUE_SCALE_2D", "8x3x224x224", {"input": (8, 3, 224, 224)}, colours)


def _regions() -> Iterator[Form]:
    image, count, aligned = (2, 256, 50, 68), 256, (256, 256, 7, 7)
    regions = {"roi": (count, 4), "batch_indices": (count,)}
    common: dict[str, Any] = {
        "reduction_function": ReduceFunction.AVERAGE,
        "interpolation_mode": InterpolationMode.LINEAR,
        "spatial_scale_x": 0.0625,
        "spatial_scale_y": 0.0625,
        "minimum_samples_per_output": 2,
        "maximum_samples_per_output": 2,
    }
    outside = {"out_of_bounds_input_value": 0.0}
    types = {"batch_indices": "UINT32"}
    tensors = {"input": image, **regions}
    for number in ("", "1"):
        name, attributes = f"ROI_ALIGN{number}", common | outside
        yield Form(name, "256 regions of 7x7", tensors, attributes, sizes=aligned, types=types)
    offsets = {"input_pixel_offset": 0.5, "output_pixel_offset": -0.5, "align_regions_to_corners": False}
    gradients = {"input": image, "input_gradient": aligned, **regions}
    wanted = frozenset(("output_gradient_tensor", "output_roi_gradient_tensor"))
    yield Form("ROI_ALIGN_GRAD", "256 regions of 7x7", gradients, common | offsets, image, wanted, types)
    pooled = {"spatial_scale": 0.0625, "pooled_size": Size2D(7, 7)}
    tensors = {"input": image, "roi": (1, 1, count, 5)}
    yield Form("ROI_POOLING", "256 regions of 7x7", tensors, pooled)


def _others() -> Iterator[Form]:
    wanted = frozenset(("output_state_tensor",))
    yield Form("RANDOM_GENERATOR", "a million", {"input_state": (1, 6)}, sizes=(1, 1_000_000), wanted=wanted)
