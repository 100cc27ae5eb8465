"""Dataclasses whose methods are made late are those of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import numpy as np
import pytest

from opendml import late_dataclass


def made_with(dataclass: Any) -> list[type]:
    """Return classes with all features that the library uses, made by one decorator."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False, repr=False)

    @dataclass(frozen=True)
    class Named(Point):
        """A point with a name, and attributes that are no fields."""

        name: str = field(default="", kw_only=True)
        length: int = field(init=False, default=7)

    @dataclass(frozen=True, kw_only=True)
    class Checked:
        """A class that changes its fields."""

        x: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "x", abs(self.x))

    @dataclass(frozen=True, slots=True)
    class Same:
        """A class with its own comparison."""

        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same)

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "same"

    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Plain:
        """A class whose objects are equal to themselves alone."""

        x: int = 0

    @dataclass(frozen=True, slots=True)
    class Single:
        """A class with one field."""

        x: Any

    @dataclass(frozen=True, slots=True)
    class Empty:
        """A class without fields."""

    return [Point, Named, Checked, Same, Plain, Single, Empty]


PAIRS = list(zip(made_with(late_dataclass.dataclass), made_with(dataclasses.dataclass), strict=True))


@pytest.fixture(params=PAIRS, ids=lambda pair: pair[0].__name__)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A class with late methods, and one of `dataclasses`."""
    return request.param  # type: ignore[no-any-return]


def arguments(of: Any) -> dict[str, Any]:
    """Return arguments for all parameters that must be given."""
    return {name: -3 for name, each in inspect.signature(of).parameters.items() if each.default is each.empty}


def test_signatures_are_equal(pair: tuple[Any, Any]) -> None:
    late, usual = (inspect.signature(each) for each in pair)
    assert [(each.kind, each.annotation) for each in late.parameters.values()] == [
        (each.kind, each.annotation) for each in usual.parameters.values()
    ]
    assert str(late) == str(usual)
    assert pair[0].__match_args__ == pair[1].__match_args__


def test_objects_have_equal_fields_and_text(pair: tuple[Any, Any]) -> None:
    late, usual = (of(**arguments(of)) for of in pair)
    assert dataclasses.asdict(late) == dataclasses.asdict(usual)
    assert repr(late).split(" object")[0] == repr(usual).split(" object")[0]
    assert hasattr(late, "__dict__") == hasattr(usual, "__dict__")


def test_comparisons_are_equal(pair: tuple[Any, Any]) -> None:
    results = []
    for of in pair:
        one, same, other = of(**arguments(of)), of(**arguments(of)), object()
        results.append([one == one, one == same, one == other, hash(one) == hash(same), one != same])
    assert results[0] == results[1]
    if len(pair[0].__match_args__) > 1:
        one, other = pair[0](1), pair[0](2)
        assert one != other
        assert one == replace(other, x=1)
        assert {one: "found"}[replace(other, x=1)] == "found"


@pytest.mark.parametrize("base", [late_dataclass.dataclass, dataclasses.dataclass], ids=["late", "usual"])
@pytest.mark.parametrize("own", [late_dataclass.dataclass, dataclasses.dataclass], ids=["late", "usual"])
def test_frozen_classes_inherit_from_each_other(base: Any, own: Any) -> None:
    @base(frozen=True, slots=True)
    class Base:
        x: int

    @own(frozen=True, slots=True)
    class Derived(Base):
        y: int = 7

    made = Derived(3)
    assert dataclasses.astuple(made) == (3, 7)
    assert made == Derived(3, 7) != Derived(3, 8)
    assert hash(made) == hash(Derived(3))
    for name in "xy":
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 1)


def test_objects_with_the_same_nan_are_equal(pair: tuple[Any, Any]) -> None:
    nan = float("nan")
    results = []
    for of in pair:
        given = arguments(of) | ({"x": nan} if of.__name__ in ("Point", "Plain", "Single") else {})
        results.append(of(**given) == of(**given))
    assert results[0] is results[1]


def test_a_field_that_compares_to_an_array_gives_no_array(pair: tuple[Any, Any]) -> None:
    if "x" not in inspect.signature(pair[0]).parameters or pair[0].__name__ == "Checked":
        pytest.skip("it has no field of any type")
    for of in pair:
        array = np.arange(3)
        assert (of(x=array) == of(x=array)) is (of.__name__ != "Plain")


def test_fields_cannot_be_set_or_deleted(pair: tuple[Any, Any]) -> None:
    messages = []
    for of in pair:
        made = of(**arguments(of))
        for act in (lambda made: setattr(made, "x", 1), lambda made: delattr(made, "x")):
            with pytest.raises((FrozenInstanceError, TypeError)) as error:
                act(made)
            messages.append(str(error.value).replace("type object", ""))
    if fields(pair[0]):
        assert messages[:2] == messages[2:]


def test_missing_and_unknown_arguments_raise_equal_errors(pair: tuple[Any, Any]) -> None:
    for given in ({"unknown": 1}, {}):
        errors = []
        for of in pair:
            try:
                of(**given)
                errors.append("")
            except TypeError as error:
                errors.append(str(error))
        assert errors[0] == errors[1]


def test_factories_make_an_object_each() -> None:
    late = PAIRS[0][0]
    assert late(1).tags == []
    assert late(1).tags is not late(1).tags
    assert late(1, tags=["a"]).tags == ["a"]


def test_objects_are_copied_and_replaced(pair: tuple[Any, Any]) -> None:
    made = pair[0](**arguments(pair[0]))
    assert type(copy.copy(made)) is pair[0]
    assert dataclasses.asdict(copy.deepcopy(made)) == dataclasses.asdict(made)
    for of in (replace, late_dataclass.replace):
        assert dataclasses.asdict(of(made)) == dataclasses.asdict(made)


def test_some_fields_are_replaced(pair: tuple[Any, Any]) -> None:
    made = pair[0](**arguments(pair[0]))
    names = {each.name for each in fields(pair[0]) if each.init}
    for name in arguments(pair[0]):
        changed = {name: 4} if name in names else {}
        own, usual = (of(made, **changed) for of in (late_dataclass.replace, replace))
        assert type(own) is pair[0]
        assert dataclasses.asdict(own) == dataclasses.asdict(usual)
    with pytest.raises(TypeError, match="unknown"):
        late_dataclass.replace(made, unknown=1)


@late_dataclass.dataclass(frozen=True, slots=True)
class Pickled:
    """A class that can be found by its name."""

    x: int
    y: tuple[int, ...] = ()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_objects_are_pickled(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, (2, 3)), protocol)) == Pickled(1, (2, 3))


def test_parts_are_matched() -> None:
    match Pickled(4, (5,)):
        case Pickled(x, (y,)):
            assert (x, y) == (4, 5)
        case _:
            raise AssertionError


def test_programs_derive_frozen_classes_alone() -> None:
    for base in PAIRS[0]:
        derived: Any = dataclasses.dataclass(frozen=True)(
            type("Own", (base,), {"__annotations__": {"z": int}, "z": 3})
        )
        assert dataclasses.asdict(derived(1, 2, ["a"], 4)) == {"x": 1, "y": 2, "tags": ["a"], "z": 4}
        assert derived(1) == derived(1, z=3)
        with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
            dataclasses.dataclass(type("Other", (base,), {}))


@late_dataclass.light_dataclass(frozen=True, slots=True)
class Light:
    x: int
    tags: tuple[int, ...] = field(default=(), kw_only=True)


def test_a_light_class_differs_in_assignments_alone() -> None:
    made = Light(1, tags=(2,))
    assert (made, hash(made), repr(made)) == (
        Light(1, tags=(2,)),
        hash(Light(1, tags=(2,))),
        "Light(x=1, tags=(2,))",
    )
    assert late_dataclass.replace(made, x=3) == Light(3, tags=(2,)) != made
    assert late_dataclass.replace(made, tags=()) == Light(1)
    assert pickle.loads(pickle.dumps(made)) == made
    made.x = 3
    assert made == Light(3, tags=(2,))


def test_frozen_and_light_classes_inherit_from_each_other() -> None:
    @late_dataclass.dataclass(frozen=True, slots=True)
    class Frozen(Light):
        y: int = 7

    @late_dataclass.light_dataclass(frozen=True, slots=True)
    class LightAgain(Frozen):
        z: int = 8

    assert dataclasses.astuple(LightAgain(1)) == (1, (), 7, 8)
    assert late_dataclass.replace(Frozen(1, 2), x=3, tags=(4,)) == Frozen(3, 2, tags=(4,))
    with pytest.raises(FrozenInstanceError):
        Frozen(1).x = 3
    again = LightAgain(1)
    again.x = 3
    assert again == LightAgain(3)


def test_replacing_an_unknown_field_raises_the_error_of_the_class() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
        late_dataclass.replace(Light(1), unknown=2)  # type: ignore[call-arg]


def test_fields_with_the_names_of_arguments_are_replaced() -> None:
    @late_dataclass.light_dataclass(frozen=True, slots=True)
    class Step:
        of: int
        own: int
        instance: int

    assert late_dataclass.replace(Step(1, 2, 3), of=4) == Step(4, 2, 3)
    assert late_dataclass.replace(Step(1, 2, 3), own=4, instance=5) == Step(1, 4, 5)
