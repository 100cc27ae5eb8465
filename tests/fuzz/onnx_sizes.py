"""ONNX models of a few nodes at several sizes: their plans against ONNX Runtime and exact compilations."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import opendml as dml
import opendml.onnx
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.frontends.onnx.trace import Steps
from opendml.runtime.graphs.traced_model import TracedModel
from opendml.targets.object_cache import PLANS_VARIABLE
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.onnx_draft import Array, Draft, Tensor
from tests.fuzz.onnx_graphs import add_nodes, difference, evaluated, model_with, run_by_onnxruntime, shown
from tests.fuzz.onnx_witnesses import EMPTY, open_results
from tests.plans import check_words_of

OPSETS = (22, 18, 13, 15, 16, 20, 21, 23, 24)
MOST_NODES = 8
CHANGING = (5, 3, 7, 4, 2)
"""Sizes of the draft that may change."""
SIZES = (6, 9, 2, 17, 3, 5, 7, 4, 12, 33, 1, 0, 64, 130)
"""Sizes that they change to: also those of other dimensions and of constants."""
MOST_ELEMENTS = 50_000


@dataclass
class SizesDraft(Draft):
    """A draft whose tensors with changing sizes are inputs, and whose lists of numbers are constants.

    Attributes:
        changing: the sizes that change.
    """

    changing: frozenset[int] = field(default_factory=frozenset)

    def given(self, content: Array) -> Tensor:
        if self.changing.isdisjoint(content.shape):
            return super().given(content)
        tensor = Tensor(self.name(), content, True)
        self.inputs.append(tensor)
        self.tensors.append(tensor)
        return tensor

    def stored_list(self, values: Sequence[float] | Array, type: Any = np.int64) -> str:
        return self.stored_one(np.asarray(values, type)).name


@dataclass(frozen=True, repr=False)
class OnSizes(Case):
    """A graph that choices make, at several sizes.

    Attributes:
        choices: of the generator.
    """

    choices: tuple[int, ...]

    def check(self) -> None:
        choices = Choices(tape=self.choices)
        draft = drafted(choices)
        model = model_of(draft)
        changes = [{}, *[_change(draft) for _ in range(choices.between(1, 3))]]
        runs = [
            (change, feed, _wanted(model, feed))
            for change in changes
            if (feed := _feed(draft, change)) is not None
        ]
        runs = [(change, feed, wanted) for change, feed, wanted in runs if wanted]
        if not runs:
            return
        with pytest.MonkeyPatch.context() as patch:
            # A stored plan may be of a graph that was fused for other sizes.
            patch.setenv(PLANS_VARIABLE, "0")
            try:
                loaded = dml.onnx.load(model, "cpu")
            except dml.InvalidArgument:
                return  # ONNX's inference refuses what ONNX Runtime takes.
            for change, feed, wanted in runs:
                _check_run(loaded, change, feed, wanted, draft, model)
        for traced in traced_models(loaded):
            for sizes in list(traced._models):
                check_words_of(traced, dict(zip(traced.maker.dimensions, sizes, strict=True)))
        for order in (runs[::-1], runs):
            # The second session finds the plans of the first one.
            loaded = dml.onnx.load(model, "cpu")
            for change, feed, wanted in order:
                _check_run(loaded, change, feed, wanted, draft, model)


def make(choices: Choices) -> OnSizes:
    """Return a graph of up to eight nodes at two to four sizes."""
    start = len(choices.tape)
    draft = drafted(choices)
    model_of(draft)
    for _ in range(choices.between(1, 3)):
        _change(draft)
    return OnSizes(tuple(choices.tape[start:]))


def drafted(choices: Choices) -> SizesDraft:
    """Return a draft of nodes that ONNX's evaluator can run."""
    opset, changing = choices.of(OPSETS), frozenset(choices.some(CHANGING)) or frozenset(CHANGING[:1])
    draft = SizesDraft(choices, opset, changing=changing)
    add_nodes(draft, MOST_NODES, 6)
    return draft


def model_of(draft: SizesDraft) -> onnx.ModelProto:
    """Return the model, whose outputs are the tensors that no node reads."""
    read = {name for node in draft.nodes for name in node.input}
    known = {*draft.ends, *(each.name for each in draft.tensors)}
    outputs = [
        name
        for node in draft.nodes
        for name in node.output
        if node.op_type != "Constant" and name in known and name not in read
    ]
    is_shared = draft.choices.below(2)
    inputs = [
        helper.make_tensor_value_info(
            each.name,
            helper.np_dtype_to_tensor_dtype(each.type),
            [_dimension(each.name, axis, size, draft, is_shared) for axis, size in enumerate(each.sizes)],
        )
        for each in draft.inputs
    ]
    return model_with(draft, inputs, outputs)


def _dimension(name: str, axis: int, size: int, draft: SizesDraft, is_shared: int) -> str | int:
    if size not in draft.changing:
        return size
    return f"size{size}" if is_shared else f"{name}_{axis}"


def _change(draft: SizesDraft) -> dict[int, int]:
    """Return other sizes in place of those that change."""
    return {size: draft.choices.of(SIZES) for size in sorted(draft.changing)}


def _feed(draft: SizesDraft, change: Mapping[int, int]) -> dict[str, Array] | None:
    """Return the inputs with other sizes; None: they are too large, or peers do not survive them."""
    changed = {each.name: [change.get(size, size) for size in each.sizes] for each in draft.inputs}
    if any(math.prod(each) > MOST_ELEMENTS for each in changed.values()):
        return None
    feed = {
        each.name: np.resize(each.content[::-1] if each.content.ndim else each.content, changed[each.name])
        for each in draft.inputs
    }
    is_empty = any(not each.size for each in feed.values())
    is_empty |= any(not each.content.size for each in draft.tensors)
    return None if is_empty and any(node.op_type in EMPTY for node in draft.nodes) else feed


def _wanted(model: onnx.ModelProto, feed: dict[str, Array]) -> dict[str, list[Any]]:
    """Return the results of ONNX Runtime and ONNX's evaluator, or of one and a model of these sizes alone.

    Operators of Microsoft and tensors without elements may end the process of ONNX Runtime, where sizes do
    not fit. Nothing is returned if a peer refuses the sizes.
    """
    is_tried = all(each.size for each in feed.values()) and not any(node.domain for node in model.graph.node)
    found = {"onnx": evaluated(model, feed)}
    if is_tried:
        found["ONNX Runtime"] = run_by_onnxruntime(model, feed)
    wanted = {name: each for name, each in found.items() if each is not None}
    if len(wanted) == 2 or (is_tried and not wanted):
        return wanted
    with warnings.catch_warnings(), suppress(dml.Error):
        warnings.simplefilter("ignore")
        exact = dml.onnx.load(model, "cpu")
        exact._tracer._symbols, exact._tracer._traces_sizes = {}, False
        return wanted | {"exact": list(exact.run(feed).values())}
    return {}


def _check_run(
    loaded: dml.onnx.OnnxModel,
    change: Mapping[int, int],
    feed: dict[str, Array],
    wanted: dict[str, list[Any]],
    draft: SizesDraft,
    model: onnx.ModelProto,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = list(loaded.run(feed).values())
        except dml.Error as error:
            names = [node.output[0] for node in draft.nodes if f"'{node.output[0]}'" in str(error)]
            kind = [node.op_type for node in draft.nodes if node.output[0] in names] or ["model"]
            if kind[0].endswith("Pool") and "must be over at most" in str(error):
                return  # Of a window larger than the image, the parts of onnx contradict each other.
            text = f"{error}\n{change}\n{shown(draft, names)}"
            raise AssertionError(f"refused: {kind[0]}, not by {', '.join(wanted)}: {text}") from error
    exact = {each.name for each in draft.tensors if each.is_exact}
    left_open = open_results(draft, model.graph.node)
    results = [*itertools.chain(*wanted.values()), *(each.content for each in draft.tensors)]
    is_finite = all(np.isfinite(each).all() for each in results if each is not None)
    for number, (result, value) in enumerate(zip(found, model.graph.output, strict=True)):
        if value.name in left_open:
            continue
        trusted = {
            name: np.asarray(each[number])
            for name, each in wanted.items()
            if name != "onnx" or (value.name not in draft.ends and each[number] is not None)
        }
        problem = difference(result, trusted, is_exact=value.name in exact, is_finite=is_finite)
        if problem:
            operators = [node.op_type for node in model.graph.node if value.name in node.output]
            raise AssertionError(
                f"wrong: {operators[0]}, {value.name} at {change}: {problem}\n{shown(draft, [value.name])}"
            )


def traced_models(model: dml.onnx.OnnxModel) -> list[TracedModel]:
    """Return the graphs with traced sizes of a model."""

    def below(steps: Steps) -> Iterator[TracedModel]:
        for step in itertools.chain(*steps.values()):
            if isinstance(step.work, CompiledSegment) and isinstance(step.work.model, TracedModel):
                yield step.work.model
            yield from below(step.next_steps)

    return list(below(model._tracer._first_steps))
