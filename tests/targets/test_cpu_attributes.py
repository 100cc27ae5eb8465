"""Attributes are parameters of machine code, which needs no symbols, and tables of functions are accurate."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import opendml as dml
from opendml import TensorDesc, descs
from opendml.compiler import fuse
from opendml.program.functions import erf, gaussian_error_linear_unit
from opendml.program.node import FUNCTIONS, Node, Operation, ordered, rebuild, source
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.spec.enums import MultiheadAttentionMaskType, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.targets.cpu import engine, ir, machine_code
from opendml.targets.cpu.bundles import with_functions
from opendml.targets.cpu.emit_kernel import emit_kernel
from opendml.targets.cpu.engine import effort_for
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.machine import CpuMachine, assumed, machine
from opendml.targets.cpu.machine_code import MachineCode, compile_object
from opendml.targets.cpu.pattern import CpuMode, CpuPattern
from opendml.targets.cpu.planning import compile_plan
from opendml.targets.cpu.table_math import expand, expand_narrow, looked_up
from opendml.targets.cpu.tables import has_tables, table_size
from tests.program.compiled import assert_same_bits, run_compiled
from tests.program.evaluate import evaluate
from tests.program.sweeps import Case, distance, magnitudes
from tests.program.test_vector_math import exact_erf, exact_gelu
from tests.running import launches, same_bits
from tests.targets.walks import FAMILIES, WALKS
from tools.pointwise_cases import OPERATORS, desc_of, type_combinations

ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "ActivationCelu": ("alpha",),
    "ActivationElu": ("alpha",),
    "ActivationHardSigmoid": ("alpha", "beta"),
    "ActivationHardSwish": ("alpha", "beta"),
    "ActivationLeakyRelu": ("alpha",),
    "ActivationLinear": ("alpha", "beta"),
    "ActivationParametricSoftplus": ("alpha", "beta"),
    "ActivationScaledElu": ("alpha", "gamma"),
    "ActivationScaledTanh": ("alpha", "beta"),
    "ActivationShrink": ("bias", "threshold"),
    "ActivationSoftplus": ("steepness",),
    "ActivationSwish": ("sigmoid_input_scale",),
    "ActivationThresholdedRelu": ("alpha",),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3e38, -1e-40, 2.0**-70, np.inf, -np.inf, np.nan)
VALUES = np.concatenate(
    [
        np.linspace(-9, 9, 157, dtype=np.float32),
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 3e38, -3e38, 89, -104], np.float32),
    ]
)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> dict[str, MachineCode]:
    """The kernels that are compiled from now on."""
    found: dict[str, MachineCode] = {}
    monkeypatch.setattr(machine_code, "_codes", found)
    return found


def ordinary(count: int) -> Iterator[float]:
    """Numbers that are no powers of two."""
    return (float(np.float32(0.13 * number + 0.011)) for number in range(1, count + 1))


@pytest.mark.parametrize("type", [dml.FLOAT32, dml.FLOAT16])
@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("ActivationCelu", {}),
        ("ActivationElu", {}),
        ("ActivationLeakyRelu", {}),
        ("ActivationLinear", {"beta": 0.5}),
    ],
)
def test_twenty_alphas_are_one_compilation(
    name: str,
    others: dict[str, float],
    type: dml.TensorDataType,
    compilations: dict[str, MachineCode],
) -> None:
    tensor = dml.TensorDesc(type, [1000])
    for alpha in ordinary(20):
        compile_plan(program_of(getattr(dml.descs, name)(tensor, tensor, alpha=alpha, **others)), None)
    assert len(compilations) == 1


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
def test_celu_divides_nothing_by_alpha_but_one(data_type: dml.TensorDataType) -> None:
    x = dml.TensorDesc(data_type, [1000])
    (launch,) = launches(dml.descs.ActivationCelu(x, x, alpha=0.7))
    quotients = [line for line in engine.kernel_assembly(launch.pattern).splitlines() if " fdiv " in line]
    assert all(re.search(r"fdiv .*0x3FF0000000000000\)?, ", line) for line in quotients)


def test_other_epsilons_bounds_and_fills_compile_nothing(
    compilations: dict[str, MachineCode],
) -> None:
    x = np.ones((2, 3, 4, 5), np.float32)
    for number in ordinary(5):
        dml.mean_variance_normalization1(x, axes=[2, 3], epsilon=number)
        dml.element_wise_clip(x, min=-number, max=number)
        dml.fill_value_constant(sizes=[7], value_data_type=dml.FLOAT64, value=number)
        dml.element_wise_identity(x, scale_bias=dml.ScaleBias(number, number + 3))
    assert len(compilations) == 4


def test_layers_that_differ_in_attributes_share_kernels(
    compilations: dict[str, MachineCode],
) -> None:
    graph = dml.Graph()
    value = graph.input("x", dml.FLOAT32, [1, 2, 8, 8])
    for number in ordinary(36):
        value = dml.mean_variance_normalization1(value, axes=[2, 3], epsilon=number * 1e-3)
        value = dml.activation_celu(value, alpha=number)
    graph.compile({"y": value}, device="cpu")
    assert len(compilations) <= 3


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_bits_are_those_of_constants_in_the_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(len(name))
    for number in range(6):
        chosen = [
            random.choice(SPECIAL) if number % 2 else random.normal() * 4 ** random.normal()
            for _ in ACTIVATIONS[name]
        ]
        attributes = dict(zip(ACTIVATIONS[name], map(float, chosen), strict=True))
        for x in (VALUES, VALUES.clip(-6e4, 6e4).astype(np.float16)):
            given = result(getattr(dml.descs, name), attributes, x)
            with monkeypatch.context() as patch:
                patch.setattr(fuse, "with_parameters", in_the_code)
                expected = result(getattr(dml.descs, name), attributes, x)
            assert given.tobytes() == expected.tobytes(), (attributes, x.dtype)


def in_the_code(values: Sequence[Node], shared: object) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    return tuple(values), ()


def result(desc: Callable[..., Any], attributes: dict[str, float], x: Array) -> Array:
    """What an activation gives."""
    y = np.empty_like(x)
    tensor = dml.TensorDesc(dml.TensorDataType[x.dtype.name.upper()], x.shape)
    instance = CpuExecutable(compile_plan(program_of(desc(tensor, tensor, **attributes)), None)).instantiate()
    instance.bind(0, x.ctypes.data)
    instance.bind(1, y.ctypes.data)
    instance.dispatch()
    return y


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


def compiled(pattern: CpuPattern, processor: Processor) -> bytes:
    """The pattern's object file."""
    module = ir.Module(processor.triple)
    described = CpuMachine(
        processor.name, processor.features, processor.triple, processor.vector_bytes, *_CACHE_BYTES
    )
    with assumed(described):
        emit_kernel(module, "kernel", pattern, processor.vector_bytes // pattern.lane_bytes)
    assembly = with_functions(str(module), module.shared_functions)
    return compile_object(assembly, effort_for(pattern), target_machine(processor))


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
    assert [launch.pattern.mode for launch in launches(desc)] == [CpuMode.CONTRACTION_CHAIN]
    assert needed_symbols([desc], processor) == {}


def test_a_needed_symbol_is_found() -> None:
    """Without F16C there is no instruction from FLOAT16."""
    types = {"InputTensor": "FLOAT16", "OutputTensor": "FLOAT32"}
    old = Processor("x86_64-unknown-linux-gnu", "x86-64", 16, "")
    assert set(needed_symbols([desc_of("CAST", types, 1000)], old)) == {"__extendhfsf2"}


INFINITY, NAN = math.inf, math.nan
X = source(0, ScalarType.FLOAT32)
CASES = {
    "erf": Case(erf, exact_erf, 1.02, -6, 2),
    "gelu": Case(gaussian_error_linear_unit, exact_gelu, 2.6, -8, 4),
}
MACHINES = {
    8: replace(machine(), features="+fma,+f16c,+avx2", vector_bytes=32),
    16: replace(machine(), features="+fma,+f16c,+avx2,+avx512f", vector_bytes=64),
}
"""Processors, by the entries of a table."""

needs_tables = pytest.mark.skipif(
    not has_tables(), reason="this processor does not look up tables in registers"
)


def in_tables(root: Node, expansion: Callable[[Node], Node] = expand) -> Node:
    """Return the value in basic operations and LOOKUP."""
    return rebuild([root], lambda node: expansion(node) if node.operation in FUNCTIONS else node)[0]


@pytest.mark.parametrize("size", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_function_keeps_its_stated_accuracy(name: str, size: int) -> None:
    case = CASES[name]
    x = magnitudes(case.lowest, case.highest, step=11 * (case.highest - case.lowest))
    with assumed(MACHINES[size]):
        root = in_tables(case.function(X))
    x = np.concatenate([x, around_edges(root)])
    with np.errstate(all="ignore"):
        exact = case.exact(x.astype(np.float64))
    assert distance(evaluate(root, x), exact).max() <= case.ulps


def around_edges(root: Node) -> Array:
    """Return the numbers around those where the index into the tables changes."""
    (index,) = {node.operands[0] for node in ordered([root]) if node.operation is Operation.LOOKUP}
    low, high = np.array([2.0**-20, 8.0], np.float32).view(np.int32)
    coarse = np.arange(low, high, 1 << 12, dtype=np.int32)
    indices = evaluate(index, coarse.view(np.float32))
    edges = coarse[:-1][indices[1:] != indices[:-1]]
    assert len(edges) >= 7
    dense = (edges[:, None] + np.arange(1 << 12, dtype=np.int32)).ravel().view(np.float32)
    return np.concatenate([dense, -dense])


@pytest.mark.parametrize("name", CASES)
def test_float16_function_adds_a_sixteenth_of_the_last_place_to_the_rounding_at_most(name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    result = evaluate(in_tables(CASES[name].function(X), expand_narrow), x.astype(np.float32))
    result = result.astype(np.float16).astype(np.float64)
    exact = CASES[name].exact(x.astype(np.float64))
    _, exponent = np.frexp(exact)
    assert np.abs((result - exact) / np.ldexp(1.0, np.maximum(exponent, -13) - 11)).max() <= 0.5625


@pytest.mark.parametrize("size", MACHINES)
@pytest.mark.parametrize("expansion", [expand, expand_narrow], ids=["float32", "float16"])
@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("erf", 0.0, 0.0),
        ("erf", -0.0, -0.0),
        ("erf", INFINITY, 1.0),
        ("erf", -INFINITY, -1.0),
        ("gelu", 0.0, 0.0),
        ("gelu", -0.0, -0.0),
        ("gelu", INFINITY, INFINITY),
        ("gelu", 1000.0, 1000.0),
        ("gelu", -INFINITY, NAN),
        ("gelu", -1000.0, -0.0),
        *((name, NAN, NAN) for name in CASES),
    ],
)
def test_special_value(
    name: str, argument: float, expected: float, expansion: Callable[[Node], Node], size: int
) -> None:
    with assumed(MACHINES[size]):
        root = in_tables(CASES[name].function(X), expansion)
    type = np.float16 if expansion is expand_narrow else np.float32
    result = evaluate(root, np.array([argument], np.float32)).astype(type)
    assert same_bits(result, np.array([expected], type))


@needs_tables
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_same_bits(name: str, lanes: int) -> None:
    assert_same_bits(in_tables(CASES[name].function(X)), lanes, CASES[name].magnitudes(30011))


@needs_tables
def test_only_the_low_bits_of_an_index_count() -> None:
    table = tuple(float(number) for number in range(8))
    index = Node(Operation.BITCAST, ScalarType.INT32, (), (X,))
    x = np.array([-1, 0, 7, 8, 15, 16, 1 << 30, -(1 << 31)], np.int32)
    result = run_compiled(looked_up(table, index), 8, x.view(np.float32))
    assert result.tolist() == [7, 0, 7, 0, 7, 0, 0, 0]


@needs_tables
def test_table_of_twice_as_many_entries_is_looked_up_where_registers_hold_it() -> None:
    size = table_size()
    index = np.arange(-16, 16, dtype=np.int32)
    root = looked_up(tuple(map(float, range(size))), Node(Operation.BITCAST, ScalarType.INT32, (), (X,)))
    assert run_compiled(root, 16, index.view(np.float32)).tolist() == (index % size).tolist()


def test_processor_without_avx2_has_no_tables() -> None:
    with assumed(replace(machine(), features="+fma,+f16c,-avx2", vector_bytes=16)):
        assert not has_tables()


def test_function_without_tables_is_expanded_as_for_other_processors() -> None:
    root = in_tables(Node(Operation.EXPONENTIAL, X.type, (), (X,)))
    assert not [node for node in ordered([root]) if node.operation in (*FUNCTIONS, Operation.LOOKUP)]
