"""ONNX models of a few nodes mean what ONNX's evaluator or ONNX Runtime says, in every run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import opendml as dml
import opendml.onnx
from opendml.frontends.onnx.node import captured
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.onnx_draft import Array, Draft, Made, Tensor
from tests.fuzz.onnx_nodes import MAKERS
from tests.fuzz.onnx_witnesses import errs, is_untried, open_results

OPSETS = (22, 18, 13, 15, 16, 20, 21, 23, 24)
MOST_NODES = 12
DEVICES = ("reference", "reference", "reference", "cpu")
MOST_ELEMENTS = 100_000


@dataclass(frozen=True, repr=False)
class OnNodes(Case):
    """A graph that choices make.

    Attributes:
        choices: of the generator.
        device: where it runs.
    """

    choices: tuple[int, ...]
    device: str = "reference"

    def check(self) -> None:
        draft = drafted(Choices(tape=self.choices))
        model = model_of(draft)
        feeds = [{each.name: each.content for each in draft.inputs}]
        feeds.append({each.name: _other(each.content) for each in draft.inputs})
        loaded = dml.onnx.load(model, self.device)
        for number, feed in enumerate(feeds):
            wanted = {"onnx": evaluated(model, feed), "ONNX Runtime": run_by_onnxruntime(model, feed)}
            if not number:
                contents = {each.name: each.content for each in draft.tensors}
                wanted["node by node"] = [contents.get(each.name) for each in model.graph.output]
            wanted = {name: each for name, each in wanted.items() if each is not None}
            if len(wanted) < 2:
                return  # one alone may be wrong
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = list(loaded.run(feed).values())
                except dml.Error as error:
                    nodes = [node for node in draft.nodes if f"'{node.output[0]}'" in str(error)]
                    kind = nodes[0].op_type if nodes else "model"
                    text = shown(draft, [node.output[0] for node in nodes])
                    raise AssertionError(
                        f"refused: {kind}, not by {', '.join(wanted)}: {error}\n{text}"
                    ) from error
            _assert_one_of(found, wanted, draft, model)


def make(choices: Choices) -> OnNodes:
    """A graph of up to twelve nodes."""
    device = choices.of(DEVICES)
    start = len(choices.tape)
    model_of(drafted(choices))
    return OnNodes(tuple(choices.tape[start:]), device)


def drafted(choices: Choices) -> Draft:
    """A graph of nodes that ONNX's evaluator can run."""
    draft = Draft(choices, choices.of(OPSETS))
    add_nodes(draft, MOST_NODES, 7)
    return draft


def add_nodes(draft: Draft, most: int, rarity: int) -> None:
    """Add one to `most` nodes, where each is the last one with a chance of one in `rarity`."""
    count = 0
    while not count or (count < most and not draft.choices.rarely(rarity)):
        add(draft, draft.choices.of(MAKERS)(draft))
        count += 1


def model_of(draft: Draft) -> onnx.ModelProto:
    """The model, whose outputs are all that no node reads and some of the other tensors."""
    read = {name for node in draft.nodes for name in node.input}
    made = [name for node in draft.nodes for name in node.output if node.op_type != "Constant"]
    known = {*draft.ends, *(each.name for each in draft.tensors)}
    outputs = [name for name in made if name in known and (name not in read or draft.choices.rarely(5))]
    is_symbolic = draft.choices.below(2)
    inputs = [_info(each, is_symbolic=bool(is_symbolic)) for each in draft.inputs]
    return model_with(draft, inputs, outputs)


def model_with(
    draft: Draft, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[str]
) -> onnx.ModelProto:
    """The model of a draft's nodes and initializers."""
    graph = helper.make_graph(
        draft.nodes,
        "graph",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(each.content, each.name) for each in draft.stored],
    )
    return helper.make_model(graph, opset_imports=opsets(draft), ir_version=10)


def opsets(draft: Draft) -> list[onnx.OperatorSetIdProto]:
    return [helper.make_opsetid("", draft.opset), helper.make_opsetid("com.microsoft", 1)]


def evaluated(model: onnx.ModelProto, feed: dict[str, Array]) -> list[Any] | None:
    """What ONNX's evaluator computes; None: nothing."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(ReferenceEvaluator(model).run(None, feed))
    except Exception:
        return None


def run_by_onnxruntime(model: onnx.ModelProto, feed: dict[str, Array]) -> list[Any] | None:
    """What ONNX Runtime computes; None: nothing, or it is not installed."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        typed = onnx.shape_inference.infer_shapes(model).SerializeToString()
        session = onnxruntime.InferenceSession(typed, options, providers=["CPUExecutionProvider"])
        return list(session.run(None, feed))
    except Exception:
        return None


def add(draft: Draft, made: Made) -> None:
    """Adds a node, if ONNX's evaluator can run it, or ONNX Runtime that of its own domain."""
    names = [draft.name() for _ in range(made.outputs)]
    node = helper.make_node(made.operator, made.inputs, names, domain=made.domain, **made.attributes)
    if not made.domain:
        try:
            onnx.defs.get_schema(made.operator, draft.opset)
        except onnx.defs.SchemaError:
            return
    reads = {each.name: each for each in draft.tensors if each.name in {*node.input, *captured(node)}}
    given = {name: each.content for name, each in reads.items()}
    if is_untried(node, given):
        return
    graph = helper.make_graph(
        [node],
        "node",
        [_info(each, is_symbolic=False) for each in reads.values()],
        [onnx.ValueInfoProto(name=name) for name in names],
    )
    model = helper.make_model(graph, opset_imports=opsets(draft), ir_version=10)
    run = run_by_onnxruntime if made.domain else evaluated
    results = run(model, given)
    if results is None or not all(isinstance(each, np.ndarray | np.generic) for each in results):
        return
    contents = [np.asarray(each) for each in results]
    if any(each.size > MOST_ELEMENTS or each.dtype.kind not in "fiub" for each in contents):
        return
    draft.nodes.append(node)
    if made.operator == "Loop":  # what it stacks is not what ONNX's evaluator says
        draft.ends.append(names.pop())
    if errs(node, draft.opset, given):
        draft.ends.extend(names)
        return
    draft.tensors.extend(
        Tensor(name, content, made.is_exact) for name, content in zip(names, contents, strict=False)
    )


def _info(tensor: Tensor, *, is_symbolic: bool) -> onnx.ValueInfoProto:
    sizes: Sequence[Any] = (
        [f"{tensor.name}_{axis}" for axis, _ in enumerate(tensor.sizes)] if is_symbolic else tensor.sizes
    )
    return helper.make_tensor_value_info(tensor.name, helper.np_dtype_to_tensor_dtype(tensor.type), sizes)


def _other(content: Array) -> Array:
    """Other numbers in the place of floats."""
    return content.reshape(-1)[::-1].reshape(content.shape).copy() if content.dtype.kind == "f" else content


def _assert_one_of(
    found: list[Any], wanted: dict[str, list[Any]], draft: Draft, model: onnx.ModelProto
) -> None:
    exact = {each.name for each in draft.tensors if each.is_exact}
    # NaN means this here, that there.
    is_finite = all(np.isfinite(each.content).all() for each in draft.tensors)
    left_open = open_results(draft, model.graph.node)
    for number, (result, value) in enumerate(zip(found, model.graph.output, strict=True)):
        if value.name in left_open:
            continue
        trusted = {
            name: np.asarray(each[number])
            for name, each in wanted.items()
            if name == "ONNX Runtime" or (value.name not in draft.ends and each[number] is not None)
        }
        problem = difference(result, trusted, is_exact=value.name in exact, is_finite=is_finite)
        if problem:
            operators = [node.op_type for node in model.graph.node if value.name in node.output]
            raise AssertionError(
                f"wrong: {operators[0]}, {value.name}: {problem}\n{shown(draft, [value.name])}"
            )


def shown(draft: Draft, names: Sequence[str]) -> str:
    """What leads to tensors."""
    needed, nodes = set(names), list[onnx.NodeProto]()
    for node in reversed(draft.nodes):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update([*node.input, *captured(node)])
    contents = {each.name: each.content for each in draft.tensors}
    given = {each.name for each in draft.inputs}
    stored = {each.name for each in draft.stored}
    lines = [f"opset {draft.opset}"]
    for name in sorted(needed & (given | stored)):
        kind = " ".join(["input"] * (name in given) + ["stored"] * (name in stored))
        content = contents[name]
        shown = content.tolist() if content.size <= 16 else ""
        lines.append(f"{name}: {kind} {content.dtype}{list(content.shape)} {shown}")
    for node in reversed(nodes):
        sizes = [
            f"{contents[name].dtype}{list(contents[name].shape)}" for name in node.output if name in contents
        ]
        lines.append(f"{onnx.printer.to_text(node)}   # {', '.join(sizes)}")
    return "\n".join(lines)


def difference(result: Array, wanted: dict[str, Array], *, is_exact: bool, is_finite: bool) -> str | None:
    """Where a result is what none of the others says; None: nowhere."""
    alike = [each for each in wanted.values() if each.dtype == result.dtype and each.shape == result.shape]
    if wanted and not alike:
        others = [f"{name}: {each.dtype}{list(each.shape)}" for name, each in wanted.items()]
        return f"{result.dtype}{list(result.shape)}, not {', '.join(others)}"
    same = np.any([_same(result, each, is_exact=is_exact) for each in alike], 0)
    if not is_finite:
        same |= np.any([np.isnan(each.astype(np.float64)) for each in (result, *alike)], 0)
    if not wanted or same.all():
        return None
    others = [f"{name}: {each[~same][:3]}" for name, each in wanted.items() if each.shape == result.shape]
    return f"{int((~same).sum())} of {same.size} wrong: {result[~same][:3]} instead of {', '.join(others)}"


def _same(result: Array, wanted: Array, *, is_exact: bool) -> Array:
    a, b = result.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        if is_exact:
            return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
        if result.dtype.kind != "f":
            return np.asarray(np.abs(a - b) <= 1)
        bound = 2e-2 if result.dtype == np.float16 else 1e-3
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        return np.isclose(a, b, bound, bound * min(scale, 1e4), equal_nan=True)
