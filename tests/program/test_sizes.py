"""Sizes that change compute as integers do, and guard what their values decide."""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from opendml.later import finish
from opendml.program import trace as trace_module
from opendml.program.atoms import Dimension, Relation
from opendml.program.size_values import _WALKS, Conditions, Values
from opendml.program.sizes import (
    NotServedError,
    Size,
    as_number,
    greatest,
    hint_of,
    in_float_type,
    is_traced,
    is_unit,
    least,
    square_root,
    value_at,
)
from opendml.program.stored_sizes import ReadSizes, WrittenSizes
from opendml.program.trace import Trace
from opendml.program.traced_floats import TracedFloat, TracedWord

HINTS = {"batch": 4, "length": 50, "width": 223}


def evaluations(count: int = _WALKS + 2) -> Iterator[None]:
    """Yield for each of some evaluations, of which the last are those of a generated function."""
    for _ in range(count):
        yield
        finish()


def of(hints: dict[str, int] = HINTS, narrows: bool = False, **ranges: int) -> tuple[Trace, dict[str, int]]:
    """Return a trace and its sizes by name."""
    trace = Trace({name: Dimension(hint, **ranges) for name, hint in hints.items()}, narrows)
    return trace, {name: trace.size(name) for name in hints}


def random_expression(
    random: random.Random, names: list[str], depth: int = 4
) -> Callable[[dict[str, Any]], Any]:
    """Return a function of dimensions made of random arithmetic."""
    if not depth or random.random() < 0.2:
        name, constant = random.choice(names), random.randrange(-9, 10)
        return (lambda d: d[name]) if random.random() < 0.7 else lambda d: constant
    first, second = (random_expression(random, names, depth - 1) for _ in range(2))
    factor = random.choice([1, 2, 3, 4, 8, 32, 100])
    return random.choice(
        [
            lambda d: first(d) + second(d),
            lambda d: first(d) - second(d),
            lambda d: first(d) * factor + second(d),
            lambda d: first(d) // factor,
            lambda d: -(-first(d) // factor) * factor,
            lambda d: first(d) % factor,
            lambda d: max(first(d), second(d)),
            lambda d: first(d) // second(d) if second(d) > 0 else second(d),
            lambda d: first(d) * second(d) if first(d) < 1 << 20 and second(d) < 1 << 20 else first(d),
            lambda d: first(d) & -factor if factor & factor - 1 == 0 else -first(d),
            lambda d: math.prod([first(d), 2]) + sum([second(d), 3]),
        ]
    )


@pytest.mark.parametrize("seed", range(200))
def test_sizes_that_meet_the_guards_have_the_values_of_integers(seed: int) -> None:
    generator = random.Random(seed)
    trace, sizes = of(narrows=seed % 2 == 0)
    expressions = [random_expression(generator, list(HINTS)) for _ in range(6)]
    traced = [expression(sizes) for expression in expressions]
    assert [hint_of(each) for each in traced] == [expression(HINTS) for expression in expressions]
    holds, values = Conditions(trace.guards), Values(traced)
    stored_holds, stored = stored_and_read(trace.guards, traced)
    assert holds(HINTS)
    for _ in range(40):
        other = {name: generator.choice([2, 3, 8, 49, 50, 224, 10_000]) for name in HINTS}
        assert stored_holds(other) == holds(other)
        if holds(other):
            try:
                assert values(other).tolist() == [expression(other) for expression in expressions]
                assert stored(other).tolist() == values(other).tolist()
            except OverflowError:
                assert any(abs(expression(other)) > 2**50 for expression in expressions)


def test_arithmetic_that_equals_by_algebra_needs_no_guard() -> None:
    trace, sizes = of()
    batch, length = sizes["batch"], sizes["length"]
    assert (batch * length * 12) // (length * 4) == 3 * batch
    assert (batch * 64 + 5) // 64 == batch
    assert (batch * 64 + 5) % 64 == 5
    assert (batch + length) * (batch - length) == batch * batch - length * length
    assert (batch * batch - length * length) // (batch + length) == batch - length
    assert batch > 1
    assert batch * 4 + 1 != length * 8
    assert batch * length < 2**62
    assert type(batch - batch) is int
    assert not trace.guards


def test_a_plain_integer_is_guarded_by_equality() -> None:
    for convert in (list, int, float, lambda n: [0] * n, range, lambda n: f"{n:d}", lambda n: "abc"[n:]):
        trace, sizes = of({"batch": 4})
        convert(range(sizes["batch"]) if convert is list else sizes["batch"])  # type: ignore[operator]
        assert list(trace.guards) == [(Relation.ZERO, sizes["batch"] - 4)]


def test_equal_hints_are_not_equal_sizes() -> None:
    trace, sizes = of({"first": 7, "second": 7})
    first, second = sizes["first"], sizes["second"]
    assert len({first, second, 7}) == 3
    assert not trace.guards
    assert first == second
    holds = Conditions(trace.guards)
    assert holds({"first": 9, "second": 9})
    assert not holds({"first": 9, "second": 8})


def test_sizes_of_two_traces_do_not_mix() -> None:
    (_, first), (_, second) = of(), of()
    assert hash(first["batch"]) != hash(second["batch"])
    with pytest.raises(ValueError, match="two traces"):
        first["batch"] + second["batch"]
    with pytest.raises(ValueError, match="two traces"):
        Values([first["batch"], second["batch"]])


def test_a_narrower_range_decides_more_and_keeps_its_guards_apart() -> None:
    trace, sizes = of({"length": 50})
    length = sizes["length"]
    blocks = -(-length // 16)
    with trace.within({"length": Dimension(40, 33, 64)}) as guards:
        assert length.hint == 40
        assert hint_of(blocks) == 3
        assert blocks <= 4
        assert not guards
        assert length % 8 == 0
        assert len(guards) == 1
        inner = length // 7
    assert hint_of(blocks) == 4
    assert hint_of(inner) == 7
    assert not trace.guards


def test_a_block_ends_with_the_first_guard_that_sizes_to_serve_do_not_meet() -> None:
    trace, sizes = of({"length": 50, "batch": 4})
    length, batch, hints = sizes["length"], sizes["batch"], trace.dimensions
    with trace.within(hints, {"length": 40, "batch": 4}) as guards:
        assert length % 2 == 0
        assert batch < 5
        assert trace.has_answers({(Relation.NOT_NEGATIVE, (length - 30).polynomial): True})
        assert not trace.has_answers({(Relation.NOT_NEGATIVE, (length - 45).polynomial): True})
        with pytest.raises(NotServedError):
            length > 45  # noqa: B015
        with pytest.raises(NotServedError):
            length % 4 == 0  # noqa: B015
    assert len(guards) == 5
    assert length > 45


def test_a_size_is_an_integer_to_checks_of_types() -> None:
    _, sizes = of()
    assert isinstance(sizes["batch"], int)
    assert type(sizes["batch"]) is Size
    assert repr(sizes["batch"] * 3 + 1) == "<1+3*batch>"


def test_values_beyond_62_bits_are_refused() -> None:
    _, sizes = of()
    batch = sizes["batch"]
    with pytest.raises(OverflowError):
        Values([batch * batch * batch])({"batch": 2**31 - 1})


def test_guards_are_exact_beyond_64_bits() -> None:
    trace, sizes = of({"batch": 50})
    assert sizes["batch"] ** 5 - 2**100 < 0
    holds = Conditions(trace.guards)
    assert holds({"batch": 2**20 - 1})
    assert not holds({"batch": 2**20})


def test_functions_of_sizes_take_any_names_numbers_and_lengths() -> None:
    names = ["1", "import os", 'a"b', "sizes", *[f"n{number}" for number in range(70)]]
    _, sizes = of(dict.fromkeys(names, 3))
    total = sum([size // 2 for size in sizes.values()]) + math.prod([sizes["1"]] * 40)
    huge = 10**5000 * sizes["1"]
    assert huge - sizes["sizes"] > 10**5000
    other = {name: 2 + number % 3 for number, name in enumerate(names)}
    difference = huge - sizes["sizes"]
    assert isinstance(difference, Size)
    values, holds = Values([total]), Conditions([(Relation.NOT_NEGATIVE, difference)])
    for _ in evaluations():
        assert values(other).tolist() == [sum([size // 2 for size in other.values()]) + 2**40]
        assert holds(other)


def test_sizes_may_be_nested_more_deeply_than_calls() -> None:
    _, sizes = of({"length": 50})
    nested, expected = sizes["length"], 77
    for _ in range(sys.getrecursionlimit() + 1):
        nested, expected = (nested * 3 + 200) // 4, (expected * 3 + 200) // 4
    values = Values([nested])
    for _ in evaluations():
        assert values({"length": 77}).tolist() == [expected]


def test_the_first_evaluations_and_those_of_a_function_are_alike() -> None:
    trace, sizes = of({"batch": 5, "length": 50})
    batch, length = sizes["batch"], sizes["length"]
    with trace.within(trace.dimensions) as guards:
        assert length % batch == 0
        assert length > 3
    values = Conditions(guards, [length // batch, greatest(length - 60, batch)])
    met, broken, divided = [
        [values.values({"batch": number, "length": 60}) for _ in evaluations()] for number in (12, 7, 0)
    ]
    assert {each if each is None else tuple(each) for each in met} == {(5, 12)}
    assert broken == divided == [None] * (_WALKS + 2)


def test_division_by_zero_is_refused() -> None:
    _, sizes = of({"n": 4}, least=0)
    with pytest.raises(ZeroDivisionError):
        sizes["n"] // 0
    assert 12 // sizes["n"] == 3


def random_float(random: random.Random, names: list[str], depth: int = 3) -> Callable[[dict[str, Any]], Any]:
    """Return a function of dimensions made of random arithmetic of floats, with comparisons."""
    if not depth:
        name, factor = random.choice(names), random.choice([1, 3, 0.5, 0.1])
        return random.choice([lambda d: d[name] * factor, lambda d: 1.0 / d[name], lambda d: d[name] / 7])
    first, second = (random_float(random, names, depth - 1) for _ in range(2))
    return random.choice(
        [
            lambda d: first(d) + second(d),
            lambda d: first(d) - second(d) * 0.3,
            lambda d: first(d) * second(d),
            lambda d: first(d) / 3,
            lambda d: square_root(as_number(abs(first(d)))),
            lambda d: in_float_type(first(d), "FLOAT32"),
            lambda d: first(d) if first(d) >= second(d) else second(d) - 1.0,
            lambda d: first(d) if first(d) != 0.5 else second(d),
        ]
    )


@pytest.mark.parametrize("seed", range(100))
def test_traced_floats_that_meet_the_guards_have_the_bits_of_floats(seed: int) -> None:
    generator = random.Random(seed)
    trace, sizes = of()
    expression = random_float(generator, list(HINTS))
    traced = expression(sizes)
    assert hint_of(traced) == expression(HINTS)
    holds = Conditions(trace.guards)
    written = [TracedWord(traced, "<d")] if is_traced(traced) else [bits(traced)]
    values, (stored_holds, stored) = Values(written), stored_and_read(trace.guards, written)
    for _ in range(20):
        other = {name: generator.randrange(2, 3000) for name in HINTS}
        assert stored_holds(other) == holds(other)
        if holds(other):
            assert values(other).tolist() == stored(other).tolist() == [bits(expression(other))]
            assert value_at(traced, other) == expression(other)


def stored_and_read(guards: Any, numbers: list[Any]) -> tuple[Conditions, Values]:
    """Return the guards and numbers that another process reads."""
    write = WrittenSizes()
    data = write.guards(guards), [write(each) for each in numbers]
    table, (listed, found) = json.loads(json.dumps([write.table(), data]))
    read = ReadSizes(table)
    return Conditions(read.guards(listed)), Values([read(each) for each in found])


def bits(value: float) -> int:
    (result,) = struct.unpack("<q", struct.pack("<d", value))
    return int(result)


def test_a_float_that_becomes_a_plain_one_is_guarded() -> None:
    for convert in (float, int, math.sqrt, math.floor, lambda x: f"{x:.1f}", lambda x: struct.pack("d", x)):
        trace, sizes = of({"batch": 4, "length": 3})
        convert(sizes["batch"] / (sizes["length"] * 7))
        assert [relation for relation, _ in trace.guards] == [Relation.ZERO]


def test_quotients_of_proportional_sizes_are_plain_floats() -> None:
    trace, sizes = of()
    batch, length = sizes["batch"], sizes["length"]
    assert (3 * batch * length) / (batch * length * 2) == 1.5
    assert math.floor(batch * 2.5) == batch * 5 // 2
    assert type(batch * 0.1) is TracedFloat
    assert 0 < 1.0 / batch <= 0.5
    assert batch * 0.5 < math.inf
    assert not trace.guards


def test_the_greatest_and_the_least_need_no_guard() -> None:
    trace, sizes = of()
    batch, length = sizes["batch"], sizes["length"]
    found = [greatest(batch, length), least(batch, length, 9), greatest(batch * 2, batch), greatest(7, 3)]
    assert not trace.guards
    assert found[2:] == [2 * batch, 7]
    values = Values(found)
    for batch, length in ((2, 5), (50, 3), (9, 9), (12, 11)):
        assert values({"batch": batch, "length": length}).tolist() == [
            max(batch, length),
            min(batch, length, 9),
            2 * batch,
            7,
        ]


def test_quotients_are_bounded_by_what_they_divide() -> None:
    trace, sizes = of()
    length = sizes["length"]
    for step in (2, 3, 32):
        assert length % step >= 0
        assert length % step < step
        assert -(-length // step) * step >= length
        assert -(-length // step) == (length + step - 1) // step
        assert (length // step) // 4 == length // (step * 4)
        assert (length * 6 + 3) // (3 * step) == (length * 2 + 1) // step
    assert not trace.guards


def test_a_block_that_treats_1_as_any_size_records_no_guard_for_it() -> None:
    trace = Trace({"batch": Dimension(5, 1)})
    batch = trace.size("batch")
    with trace.passing_units():
        assert not any((batch == 1, batch < 2, batch <= 1))
        assert batch > 1
        assert batch != 1
        assert not trace.guards
        assert batch - 1 > 1  # Another question.
    assert [Conditions(trace.guards)({"batch": size}) for size in (1, 2, 3)] == [False, False, True]
    assert Values([greatest(batch - 1, 1)])({"batch": 1}).tolist() == [1]
    assert not is_unit(batch)
    assert len(trace.guards) == 1
    assert batch > 1
    assert len(trace.guards) == 2


def test_answers_to_questions_about_sizes_say_whether_others_give_the_same() -> None:
    trace = Trace({"batch": Dimension(3, 1), "length": Dimension(100, 1)})
    batch, length = trace.size("batch"), trace.size("length")

    def made() -> list[int]:
        rows = batch if batch > 1 else 1
        return [rows, greatest(length - 64, 0), (length + 7) // length, length if length < 512 else 512]

    sizes = {}
    with trace.within({"length": Dimension(100, 64, 255)}), trace.recording() as answers:
        sizes[100] = made()
    for size, is_alike in ((200, True), (400, True), (600, False), (64, True), (63, False), (7, False)):
        with trace.within({"batch": Dimension(1, 1, 1), "length": Dimension(size, size, size)}) as guards:
            assert trace.has_answers(answers) is is_alike, size
            assert not guards
    with trace.within({"length": Dimension(300, 1, 1000)}) as guards:
        assert trace.has_answers(answers)
    dimensions = {"batch": 2, "length": 511}
    values = Conditions(guards, sizes[100]).values(dimensions)
    assert values is not None
    assert values.tolist() == [2, 447, 1, 511]
    assert not Conditions(guards)({**dimensions, "length": 512})
    assert not Conditions(guards)({**dimensions, "length": 60})
    with trace.recording() as answers:
        assert length * 0.5 > 3
    assert not trace.has_answers(answers)


def test_a_quotient_of_one_range_may_have_no_divisor_in_another() -> None:
    trace = Trace({"n": Dimension(40)})
    rest = greatest(trace.size("n") - 31, 0)
    with trace.within({"n": Dimension(40, 32, 63)}):
        assert hint_of(1000 // rest) == 111
    with trace.within({"n": Dimension(20, 16, 31)}) as guards:
        assert trace.size("n") > 15
    assert not guards


def test_guards_narrow_ranges_if_a_trace_says_so() -> None:
    trace, sizes = of(narrows=True)
    batch, length = sizes["batch"], sizes["length"]
    assert length // 8 >= 2
    assert batch != 2
    guards = dict(trace.guards)
    assert len(guards) == 2
    assert length // 8 > 1
    assert batch >= 3
    assert 0 // (length // 8) == 0
    assert trace.guards == guards
    with trace.within({"batch": Dimension(5, 2, 9)}) as inner:
        assert batch > 2
    assert not inner
    assert length // 8 == 6
    assert length // 8 * batch == 6 * batch


def test_a_trace_knows_its_own_guards_in_a_block_too() -> None:
    trace, sizes = of(narrows=True)
    assert not trace.is_in_block
    assert sizes["length"] >= 2
    own = dict(trace.own_guards)
    with trace.within({"batch": Dimension(5, 2, 9)}) as inner:
        assert sizes["batch"] >= 4
        assert trace.is_in_block
        assert inner
        assert trace.own_guards == own != inner
    assert trace.own_guards == own == trace.guards


def test_blocks_within_blocks_keep_ranges_that_guards_narrowed_outside() -> None:
    trace, sizes = of(narrows=True)
    batch, length = sizes["batch"], sizes["length"]
    assert length // 8 >= 2
    with trace.within({"batch": Dimension(5, 2, 9)}), trace.within({"batch": Dimension(6, 3, 7)}) as inner:
        assert length // 8 > 1
        assert batch >= 3
    assert not inner


def test_a_block_evaluates_the_atoms_that_it_needs_however_deeply_they_are_nested() -> None:
    trace, sizes = of()
    nested = sizes["length"]
    for _ in range(3000):
        nested = (5 * nested + 3) // 7
    assert len(trace.atoms) > 3000
    with trace.within({"length": Dimension(9, 1, 9)}):
        assert hint_of(nested) == 1
        assert nested < 9


def test_a_block_whose_begin_is_interrupted_leaves_the_trace_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = Trace({"n": Dimension(8, 2, 1000)})
    size = trace.size("n")
    assert size < 10
    guards, dimensions = dict(trace.guards), dict(trace.dimensions)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as block:
        block.setattr(trace_module, "Ranges", interrupted)
        with pytest.raises(KeyboardInterrupt), trace.within({"n": Dimension(200, 128, 255)}):
            pass
    assert not trace.is_in_block
    assert (trace.guards, trace.dimensions, trace.own_guards) == (guards, dimensions, guards)
    assert trace.range(size.polynomial) == (2, 1000)
