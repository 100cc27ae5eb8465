"""No kernel calls into a library: its object file needs no symbol, whatever the processor's features."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from opendml import TensorDesc, descs
from opendml.spec.enums import MultiheadAttentionMaskType, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.cpu.emit_kernel import emit_kernel
from opendml.targets.cpu.engine import compile_object, effort_for
from opendml.targets.cpu.machine import Machine, assumed
from opendml.targets.cpu.pattern import Mode, Pattern
from tests.running import launches
from tests.targets.walks import FAMILIES, WALKS
from tools.pointwise_cases import OPERATORS, desc_of, type_combinations


@dataclass(frozen=True)
class Processor:
    """A processor to compile for; `vector_bytes` and `features` as in `Machine`."""

    triple: str
    name: str
    vector_bytes: int
    features: str

    def __str__(self) -> str:
        return self.name


_AVX2, _AVX512 = "+avx2,+fma,+f16c", "+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl"
PROCESSORS = [
    Processor("x86_64-unknown-linux-gnu", "haswell", 32, _AVX2),
    Processor("x86_64-unknown-linux-gnu", "skylake-avx512", 64, _AVX512),
    Processor("x86_64-unknown-linux-gnu", "sapphirerapids", 64, _AVX512),
    Processor("aarch64-unknown-linux-gnu", "generic", 16, "+neon"),
]
every_processor = pytest.mark.parametrize("processor", PROCESSORS, ids=str)
_CACHE_BYTES = 1024 * 1024, 16 * 1024 * 1024
SHARE = 12
"""Of the combinations of types, what each processor takes: each another part of them."""


@cache
def target_machine(processor: Processor) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(processor.triple)
    return target.create_target_machine(cpu=processor.name, opt=3, reloc="pic", codemodel="default")


def compiled(pattern: Pattern, processor: Processor) -> bytes:
    """The pattern's object file."""
    module = ir.Module()
    module.triple = processor.triple
    described = Machine(
        processor.name, processor.features, processor.triple, processor.vector_bytes, *_CACHE_BYTES
    )
    with assumed(described):
        emit_kernel(module, "kernel", pattern, processor.vector_bytes // pattern.lane_bytes)
    return compile_object(str(module), effort_for(pattern), target_machine(processor))


def undefined_symbols(code: bytes) -> Iterator[str]:
    """The symbols that an ELF object of 64 bits needs from elsewhere; where its own data lie is none."""
    (headers,) = struct.unpack_from("<Q", code, 0x28)
    (count,) = struct.unpack_from("<H", code, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, headers + 64 * number) for number in range(count)]
    for _, kind, _, _, offset, size, strings, *_ in sections:
        if kind != 2:  # a table of symbols
            continue
        for place in range(offset, offset + size, 24):
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", code, place)
            first = sections[strings][4] + name
            text = code[first : code.index(b"\0", first)].decode()
            if section == 0 and text not in ("", "_GLOBAL_OFFSET_TABLE_"):
                yield text


def needed_symbols(descs: Iterable[OperatorDesc], processor: Processor) -> dict[str, str]:
    """The symbols that kernels of the descs need, each with a desc that does."""
    patterns = {each.pattern.text(): (each.pattern, desc) for desc in descs for each in launches(desc)}
    return {
        symbol: f"{desc} as {pattern.mode}"
        for pattern, desc in patterns.values()
        for symbol in undefined_symbols(compiled(pattern, processor))
    }


def pointwise_descs(name: str, first: int) -> Iterator[OperatorDesc]:
    """A part of all combinations of types, each over vectors, and over one number that is computed by itself
    and repeated."""
    for types in list(type_combinations(name))[first::SHARE]:
        desc = desc_of(name, types, 1000)
        yield desc
        repeated = {
            field.python_name: TensorDesc(tensor.data_type, tensor.sizes, [0])
            for field in operator(name).tensors
            if field.kind == "INPUT_TENSOR" and (tensor := getattr(desc, field.python_name)) is not None
        }
        yield desc.replace(**repeated)


@every_processor
def test_no_pointwise_kernel_needs_a_symbol(processor: Processor) -> None:
    first = PROCESSORS.index(processor)
    for number, name in enumerate(OPERATORS):
        assert needed_symbols(pointwise_descs(name, (first + number) % SHARE), processor) == {}


@every_processor
def test_no_remainder_needs_a_symbol(processor: Processor) -> None:
    for name, first in product(("ELEMENT_WISE_MODULUS_FLOOR", "ELEMENT_WISE_MODULUS_TRUNCATE"), range(SHARE)):
        assert needed_symbols(pointwise_descs(name, first), processor) == {}


@every_processor
def test_no_kernel_of_groups_needs_a_symbol(processor: Processor) -> None:
    first = PROCESSORS.index(processor)
    descs = [desc for family in FAMILIES[1:] for walk in WALKS for desc in family(walk)]
    assert needed_symbols(descs[first :: 2 * SHARE], processor) == {}


@every_processor
def test_no_chain_needs_a_symbol(processor: Processor) -> None:
    tensor = TensorDesc(TensorDataType.FLOAT16, [1, 20, 32])
    desc = descs.MultiheadAttention1(
        query_tensor=tensor,
        key_tensor=tensor,
        value_tensor=tensor,
        output_tensor=tensor,
        scale=0.25,
        query_head_count=2,
        key_value_head_count=2,
        mask_type=MultiheadAttentionMaskType.NONE,
    )
    assert [launch.pattern.mode for launch in launches(desc)] == [Mode.CONTRACTION_CHAIN]
    assert needed_symbols([desc], processor) == {}


def test_a_needed_symbol_is_found() -> None:
    """Without F16C there is no instruction from FLOAT16."""
    types = {"InputTensor": "FLOAT16", "OutputTensor": "FLOAT32"}
    old = Processor("x86_64-unknown-linux-gnu", "x86-64", 16, "")
    assert set(needed_symbols([desc_of("CAST", types, 1000)], old)) == {"__extendhfsf2"}
