"""Programs for the checks of the CUDA target: recurrent networks, attention, quantized integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import opendml as dml
from opendml.program.carriers import carried
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import MultiheadAttentionMaskType, QuantizationType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from tools.cuda_case import Case


def sequence_cases() -> Iterator[Case]:
    """All of them."""
    yield from _recurrent()
    yield from _attention()
    for name, desc in _quantized():
        yield Case(f"quantized {name}", carried(program_of(desc)))


def _recurrent() -> Iterator[Case]:
    sigmoid, tanh = descs.ActivationSigmoid(), descs.ActivationTanh()
    steps, batch, features, hidden = 7, 5, 24, 40
    for kind, type in (("LSTM", dml.FLOAT32), ("GRU", dml.FLOAT16)):
        gates = {"LSTM": 4, "GRU": 3}[kind]
        x = TensorDesc(type, (1, steps, batch, features))
        w, r = (TensorDesc(type, (1, 2, gates * hidden, size)) for size in (features, hidden))
        b, state = TensorDesc(type, (1, 1, 2, 2 * gates * hidden)), TensorDesc(type, (1, 2, batch, hidden))
        lengths = TensorDesc(dml.UINT32, (1, 1, 1, batch))
        sequence = TensorDesc(type, (steps, 2, batch, hidden))
        given: dict[str, Any] = {
            "input_tensor": x,
            "weight_tensor": w,
            "recurrence_tensor": r,
            "bias_tensor": b,
            "hidden_init_tensor": state,
            "sequence_lengths_tensor": lengths,
            "output_sequence_tensor": sequence,
            "output_single_tensor": state,
            "direction": "BIDIRECTIONAL",
        }
        desc: OperatorDesc
        if kind == "LSTM":
            peephole = TensorDesc(type, (1, 1, 2, 3 * hidden))
            desc = descs.Lstm(**given, peephole_tensor=peephole, activation_descs=[sigmoid, tanh, tanh] * 2)
        else:
            desc = descs.Gru(**given, activation_descs=[sigmoid, tanh] * 2, linear_before_reset=False)
        absolute = 1e-5 if type is dml.FLOAT32 else 2e-2
        yield Case(f"recurrent {kind} {type.name}", program_of(desc), deviation=0.3, absolute=absolute)


def _attention() -> Iterator[Case]:
    for type in (dml.FLOAT32, dml.FLOAT16):
        query, key = TensorDesc(type, (2, 33, 4 * 24)), TensorDesc(type, (2, 40, 2 * 24))
        past, present = TensorDesc(type, (2, 2, 9, 24)), TensorDesc(type, (2, 2, 49, 24))
        desc = descs.MultiheadAttention1(
            query_tensor=query,
            key_tensor=key,
            value_tensor=key,
            mask_tensor=TensorDesc(dml.INT32, (2, 1, 33, 49)),
            past_key_tensor=past,
            past_value_tensor=past,
            past_sequence_lengths_tensor=TensorDesc(dml.INT32, (2,)),
            output_tensor=query,
            output_present_key_tensor=present,
            scale=0.2,
            query_head_count=4,
            key_value_head_count=2,
            mask_type=MultiheadAttentionMaskType.BOOLEAN,
        )
        absolute = 1e-5 if type is dml.FLOAT32 else 4e-3
        yield Case(f"attention {type.name}", program_of(desc), deviation=1.0, absolute=absolute)
        # Four query heads read each head of keys.
        alone = descs.MultiheadAttention1(
            query_tensor=TensorDesc(type, (2, 33, 8 * 24)),
            key_tensor=key,
            value_tensor=key,
            output_tensor=TensorDesc(type, (2, 33, 8 * 24)),
            scale=0.2,
            query_head_count=8,
            key_value_head_count=2,
            mask_type=MultiheadAttentionMaskType.NONE,
        )
        title = f"attention {type.name} of heads that share keys"
        yield Case(title, program_of(alone), deviation=1.0, absolute=absolute)


def _quantized() -> Iterator[tuple[str, OperatorDesc]]:
    def bytes_of(*sizes: int, signed: bool = False) -> TensorDesc:
        return TensorDesc(dml.INT8 if signed else dml.UINT8, sizes)

    one, byte = TensorDesc(dml.FLOAT32, (1, 1)), bytes_of(1, 1)
    yield (
        "product",
        descs.QuantizedLinearMatrixMultiply(
            bytes_of(33, 70),
            TensorDesc(dml.FLOAT32, (33, 1)),
            byte,
            bytes_of(70, 65, signed=True),
            one,
            None,
            one,
            byte,
            bytes_of(33, 65),
        ),
    )
    pixel, image = bytes_of(1, 1, 1, 1), bytes_of(2, 6, 15, 17)
    float_pixel = TensorDesc(dml.FLOAT32, (1, 1, 1, 1))
    windows = {"strides": [1, 1], "dilations": [1, 1], "start_padding": [1, 1], "end_padding": [1, 1]}
    yield (
        "convolution",
        descs.QuantizedLinearConvolution(
            image,
            float_pixel,
            pixel,
            bytes_of(8, 3, 3, 3, signed=True),
            float_pixel,
            None,
            TensorDesc(dml.INT32, (1, 8, 1, 1)),
            float_pixel,
            pixel,
            bytes_of(2, 8, 15, 17),
            **windows,
            group_count=2,
        ),
    )
    yield (
        "convolution to integers",
        descs.ConvolutionInteger(
            image,
            pixel,
            bytes_of(8, 6, 3, 3, signed=True),
            None,
            TensorDesc(dml.INT32, (2, 8, 15, 17)),
            **windows,
            group_count=1,
        ),
    )
    yield (
        "pooling",
        descs.QuantizedLinearAveragePooling(
            image,
            float_pixel,
            pixel,
            float_pixel,
            pixel,
            image,
            **windows,
            window_size=[3, 3],
            include_padding=False,
        ),
    )
    halves, floats = TensorDesc(dml.INT4, (6, 33)), TensorDesc(dml.FLOAT32, (6, 33))
    parameters = [TensorDesc(dml.FLOAT32, (2, 3)), TensorDesc(dml.INT4, (2, 3))]
    kind = QuantizationType.SCALE_ZERO_POINT
    yield "from 4 bits", descs.Dequantize(halves, parameters, floats, quantization_type=kind)
    yield "to 4 bits", descs.Quantize(floats, parameters, halves, quantization_type=kind)
    vector = TensorDesc(dml.FLOAT32, (7001,))
    byte_vector, single = bytes_of(7001), TensorDesc(dml.FLOAT32, (1,))
    yield "dynamically", descs.DynamicQuantizeLinear(vector, byte_vector, single, bytes_of(1))
