"""Tensors whose sizes of 1 are repeated, those that only come together, and those of one element."""

from __future__ import annotations

from collections.abc import Iterator

from opendml.spec.enums import FeatureLevel
from opendml.spec.fault import Fault, wrong_sizes
from opendml.spec.feature_level import full_name
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule
from opendml.spec.schema import Broadcast, Field, Operator, Together
from opendml.spec.tensor_desc import TensorDesc


def broadcastable(operator: Operator, name: str, rule: Broadcast, level: FeatureLevel) -> Rule:
    """Every size of the tensor `name` is 1 or that of the tensor it is repeated to.

    Below `rule.channel_below` the channels (dimension 1, where there is one) are not repeated.
    """
    field, target = operator.field(name), operator.field(rule.to)
    channels = rule.channel_below if rule.channel_below and level < rule.channel_below else None

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        tensor: TensorDesc | None = getattr(desc, field.python_name)
        to: TensorDesc | None = getattr(desc, target.python_name)
        if tensor is None or to is None or len(tensor.sizes) != len(to.sizes):
            return
        for i, (size, full) in enumerate(zip(tensor.sizes, to.sizes, strict=True)):
            if size == full:
                continue
            if i == 1 and channels:
                allowed = f"must be {{{target.name}}}'s channel count {full} below {full_name(channels)}"
                yield field, Fault(size, allowed, ("Sizes", 1), channels)
            elif size != 1:
                yield field, Fault(size, f"must be 1 or {{{target.name}}}'s {full}", ("Sizes", i))

    return Rule("broadcastable", (field, target), check)


def given_together(operator: Operator, rule: Together) -> Rule:
    """The tensors are all given or all missing."""
    below = f" below {full_name(rule.below)}" if rule.below else ""
    fields = tuple(operator.field(name) for name in rule.tensors)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        given = [field.name for field in fields if getattr(desc, field.python_name) is not None]
        for field in fields:
            if given and field.name not in given:
                yield field, Fault("missing", f"required with {{{given[0]}}}{below}", since=rule.below)

    return Rule("given_together", fields, check, basic=True)


def one_element(operator: Operator, name: str) -> Rule:
    """All sizes of the tensor are 1."""
    field = operator.field(name)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        tensor: TensorDesc | None = getattr(desc, field.python_name)
        if tensor is not None and any(size != 1 for size in tensor.sizes):
            yield field, wrong_sizes(tensor.sizes, f"must be one element, {[1] * len(tensor.sizes)}")

    return Rule("one_element", (field,), check)
