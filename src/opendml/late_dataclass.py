"""Frozen dataclasses whose methods are made when they are first needed.

The library has 250 of them. For each, `dataclasses` writes and compiles the text of eight methods, most of
which are never called. That took 0.16 to 0.24 s of the 0.5 s in which a first run of ResNet-50 imports the
library (Zen 3, Python 3.11). It is 0.02 s with this module.

Of some classes, planning a model makes thousands of objects. These are `light_dataclass`: the type checker
alone forbids to assign to their fields, and an object is made in half the time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass", "light_dataclass", "replace"]

_SET_METHODS = ("__repr__", "__eq__", "__hash__")


class _LateInit:
    """The `__init__` of a class until it is first asked for, which replaces it by a function."""

    def __init__(self, of: type, is_light: bool) -> None:
        self._of, self._is_light = of, is_light

    def __get__(self, instance: object, owner: type) -> Any:
        init = _init_of(self._of, self._is_light)
        self._of.__init__ = init  # type: ignore[misc]
        return init.__get__(instance, owner)


class _Made:
    """The default of a field that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _init_of(of: type, is_light: bool) -> Any:
    """Return the function that `dataclasses` would make."""
    scope: dict[str, Any] = {"set_field": object.__setattr__, "MADE": _MADE}
    positional, keywords, lines = list[str](), list[str](), list[str]()
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(of)
    for each in fields:
        name, default = each.name, f"default_{each.name}"
        given, parameter = name, name
        if each.default_factory is not dataclasses.MISSING:
            scope[default] = each.default_factory
            parameter = f"{name}=MADE"
            given = f"{default}() if {name} is MADE else {name}" if each.init else f"{default}()"
        elif each.default is not dataclasses.MISSING:
            scope[default] = each.default
            parameter = f"{name}={default}"
            given = given if each.init else default
        elif not each.init:
            continue
        slot = getattr(of, name, None)
        if is_light:
            lines.append(f" self.{name} = {given}")
        elif isinstance(slot, MemberDescriptorType):  # An object is made in 0.6 of the time.
            scope[f"slot_{name}"] = slot.__set__
            lines.append(f" slot_{name}(self, {given})")
        else:
            lines.append(f" set_field(self, {name!r}, {given})")
        if each.init:
            (keywords if each.kw_only else positional).append(parameter)
    if hasattr(of, "__post_init__"):
        lines.append(" self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec("\n".join([f"def __init__({parameters}):", *(lines or [" pass"])]), scope)
    init = scope["__init__"]
    init.__qualname__, init.__module__ = f"{of.__qualname__}.__init__", of.__module__
    init.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
    return init


def _forbid_setting(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _forbid_deleting(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _text(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparison(of: type) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    """Return `__eq__` and `__hash__`, which compare tuples: an object in both is equal to itself, NaN too."""
    names = [each.name for each in dataclasses.fields(of) if each.compare]
    values = _values_of(names)

    def is_equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values(self))

    return is_equal, hash_of


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function of the values of fields. `attrgetter` returns the value of one without a tuple."""
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda self: (get(self),)


def _frozen(of: type, eq: bool, repr: bool, slots: bool, kw_only: bool, is_light: bool) -> type:
    own = {name for name in ("__init__", *_SET_METHODS) if of.__dict__.get(name) is not None}
    # `dataclasses` derives frozen classes from frozen ones alone. It looks for that in the parameters.
    is_derived = any("__dataclass_params__" in each.__dict__ for each in of.__mro__[1:])
    made: Any = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=is_derived, slots=slots, kw_only=kw_only
    )(of)
    made.__dataclass_params__.frozen = True
    methods: dict[str, object] = {"__init__": _LateInit(made, is_light)}
    if repr:
        methods["__repr__"] = _text
    if eq:
        methods["__eq__"], methods["__hash__"] = _comparison(made)
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    if is_light:
        made.__setattr__, made.__delattr__ = object.__setattr__, object.__delattr__
    else:
        made.__setattr__, made.__delattr__ = _forbid_setting, _forbid_deleting
    if slots:
        made.__getstate__, made.__setstate__ = _state, _restore
    return made  # type: ignore[no-any-return]


@cache
def _replacing(of: type, *changed: str) -> Callable[..., Any]:
    """Return a function of an instance and new values of some fields, which returns the changed instance."""
    every = sorted(
        [each for each in dataclasses.fields(of) if each.init], key=lambda each: bool(each.kw_only)
    )
    names = {each.name: f"{each.name}=" if each.kw_only else "" for each in every}
    values = {name: f"self.{name}" for name in names} | {name: name for name in changed}
    arguments = [f"{names.get(name, f'{name}=')}{value}" for name, value in values.items()]
    # A field may have any other name than `self`.
    made: Callable[..., Any] = eval(
        f"lambda {', '.join(['self', *changed])}: self.__class__({', '.join(arguments)})"
    )
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
    from dataclasses import dataclass as light_dataclass
else:

    def replace(instance, /, **changes):
        """Return what `dataclasses.replace` returns, in less than half the time for many fields."""
        return _replacing(type(instance), *changes)(instance, **changes)

    def dataclass(of=None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False):
        """Return what `dataclasses.dataclass` returns, quickly for a frozen class."""
        if of is None:
            return lambda of: dataclass(of, frozen=frozen, eq=eq, repr=repr, slots=slots, kw_only=kw_only)
        if not frozen:
            return dataclasses.dataclass(eq=eq, repr=repr, slots=slots, kw_only=kw_only)(of)
        return _frozen(of, eq, repr, slots, kw_only, is_light=False)

    def light_dataclass(*, frozen, eq=True, repr=True, slots=False, kw_only=False):
        """Return a decorator that makes a frozen class whose objects are made quickly."""
        assert frozen
        return lambda of: _frozen(of, eq, repr, slots, kw_only, is_light=True)
