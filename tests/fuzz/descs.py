"""Operators on guarded memory: the reference's results, the same with any number of threads, and no byte
touched that is not theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from opendml import Device, InvalidArgument, OperatorDesc, TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import reach
from opendml.spec.validator import failures
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.judgement import assert_right
from tests.fuzz.memory import guarded
from tests.fuzz.random_descs import any_desc
from tests.running import elements, numpy_type, run_all, same_bits

CANARY = 0x5A
SQUARABLE = 1e15
SUMS = ("normalization", "matrix", "convolution", "pooling", "recurrent", "attention", "training")
"""Families whose results are sums of products, or made of squares."""
SQUARES = ("LOCAL_RESPONSE_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION_GRAD")
"""What divides by sums of squares, which may be nothing else: then none may vanish."""
SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    np.inf,
    -np.inf,
    np.nan,
    6e-8,
    -1e-40,
    65504.0,
    -3.4028235e38,
    88.8,
    -1000.0,
)


@dataclass(frozen=True, repr=False)
class OnDesc(Case):
    """An operator over inputs whose values follow from a number, once for each of several numbers.

    Attributes:
        desc: what runs.
        values: choose the inputs' values; see `filled`.
    """

    desc: OperatorDesc
    values: tuple[int, ...] = (0,)

    @property
    def subject(self) -> str:
        return self.desc.operator

    def check(self) -> None:
        messages = failures(self.desc)
        if messages:
            with pytest.raises(InvalidArgument) as error:
                device(1).create_operator(self.desc)
            assert list(error.value.failures) == messages
            return
        for values in self.values:
            inputs = inputs_of(self.desc, values)
            result = self._run(inputs, threads=2, at_end=True)
            again = self._run(inputs, threads=1, at_end=False)
            for one, other in zip(result, again, strict=True):
                assert same_bits(one, other), f"{self.subject}: bits depend on the threads or on the place"
            assert_right(self.desc, inputs, result, run_all(self.desc, inputs, "reference"))

    def _run(self, inputs: Sequence[Array | None], *, threads: int, at_end: bool) -> list[Array]:
        """The outputs in guarded memory; whatever is no element of them must stay.

        Args:
            inputs: memory for each.
            threads: how many may share the work.
            at_end: memory ends where a page does, rather than beginning where one begins.
        """
        given = [None if each is None else guarded(each.size, each.dtype, at_end=at_end) for each in inputs]
        for room, values in zip(given, inputs, strict=True):
            if room is not None and values is not None:
                room[...] = values
        tensors = tensors_of(self.desc, "OUTPUT_TENSOR")
        outputs = [None if each is None else self._canaries(each, at_end=at_end) for each in tensors]
        where = device(threads)
        where.compile_operator(where.create_operator(self.desc)).bind(given, outputs).dispatch()
        results = []
        for memory, tensor in zip(outputs, tensors, strict=True):
            if memory is None or tensor is None:
                continue
            results.append(elements(memory, tensor).copy())
            bits_of(elements(memory, tensor))[...] = CANARY
            assert (bits_of(memory) == CANARY).all(), f"{self.subject}: wrote between elements of its output"
        for room, values in zip(given, inputs, strict=True):
            if room is not None and values is not None:
                assert same_bits(room, values), f"{self.subject}: wrote to an input"
        return results

    def _canaries(self, tensor: TensorDesc, *, at_end: bool) -> Array:
        """Guarded memory for a tensor."""
        count = reach(tensor.sizes, tensor.effective_strides)
        memory = guarded(count, numpy_type(tensor), at_end=at_end)
        bits_of(memory)[...] = CANARY
        return memory


def make(choices: Choices) -> OnDesc:
    """A case of small tensors of any layout."""
    return OnDesc(any_desc(choices), tuple(choices.several(lambda: choices.below(1 << 16), 1, 6)))


@cache
def device(threads: int) -> Device:
    """A CPU device with that many threads."""
    return Device("cpu", threads=threads)


def bits_of(array: Array) -> Array:
    """The elements as unsigned integers, in the same memory."""
    return array.view(np.dtype(f"u{array.itemsize}"))


def inputs_of(desc: OperatorDesc, values: int) -> list[Array | None]:
    """Memory for each input of the desc."""
    tensors = tensors_of(desc, "INPUT_TENSOR")
    inputs = [None if each is None else filled(each, values, number) for number, each in enumerate(tensors)]
    if desc.operator in SQUARES:
        inputs = [each if each is None or each.dtype != np.float32 else _squarable(each) for each in inputs]
    scaled = getattr(desc, "scale_bias", None) or getattr(desc, "fused_activation", None)
    if scaled or operator(desc.operator).family in SUMS:
        return [each if each is None or each.dtype != np.float32 else tamed(each) for each in inputs]
    return inputs


def filled(tensor: TensorDesc, values: int, number: int = 0) -> Array:
    """Memory with the values of that number: small integers, numbers of all magnitudes, also with special
    ones, or any bits. 0 are ones."""
    dtype, count = numpy_type(tensor), reach(tensor.sizes, tensor.effective_strides)
    random = np.random.default_rng([values, number])
    if values == 0:
        return np.ones(count, dtype)
    if values % 4 == 3:
        return np.frombuffer(random.bytes(count * dtype.itemsize), dtype).copy()
    if dtype.kind != "f":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        numbers = random.integers(max(low, -9), 10, count)
        ends = random.choice(np.array([low, high, 0, high // 2], dtype), count)
        return np.where(random.random(count) < 0.2 * (values % 4), ends, numbers.astype(dtype))
    if values % 4 == 0:
        return random.integers(-4, 5, count).astype(dtype)
    floats = random.standard_normal(count) * 10.0 ** random.integers(-3, 3)
    if values % 4 == 2:
        floats = np.where(random.random(count) < 0.2, random.choice(np.array(SPECIAL), count), floats)
    with np.errstate(all="ignore"):
        return floats.astype(dtype)


def _squarable(memory: Array) -> Array:
    """Without numbers whose squares are no normal numbers of float32."""
    vanishes = (memory != 0) & (np.abs(memory) < 1 / SQUARABLE)
    return np.where(vanishes, memory.dtype.type(1 / SQUARABLE), memory)


def tamed(memory: Array) -> Array:
    """Without numbers whose squares leave the range of float32, in which intermediate results are."""
    wild = np.isfinite(memory) & (np.abs(memory) > SQUARABLE)
    return np.where(wild, memory.dtype.type(1), memory)
