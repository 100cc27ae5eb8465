"""ONNX models that ask for more than their limits allow: refused before it is taken."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper

import opendml as dml
from opendml import onnx as dml_onnx
from opendml.cli import main
from opendml.frontends.onnx.protobuf import parsed_size
from opendml.frontends.onnx.regular_expressions import full_matches

pytestmark = pytest.mark.filterwarnings("ignore:.* runs on onnx's evaluator")
_UNTRUSTED = dml.Limits.untrusted()
_X = np.ones(4, np.float32)
_INTEGERS, _WIDE = np.ones((1200, 1200), np.int32), np.zeros((64, 64))
_RESIZED = ["a", "", "b"]
_LONG = np.array([" " * 10**5, *"b" * 10**4], object)
"""Strings that take 4 GB where each takes as much as the longest."""


def _model(*nodes: onnx.NodeProto, opset: int = 20, **stored: Any) -> onnx.ModelProto:
    """A model of x with these initializers, whose last node makes y."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        list(nodes),
        "g",
        [info("x", TensorProto.FLOAT, ["n"])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in stored.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports)


def _node(operator: str, *inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], **attributes)


def _refusal(model: onnx.ModelProto | Path, limits: dml.Limits = _UNTRUSTED) -> dml.LimitExceeded:
    """What a run of a model is refused for."""
    with pytest.raises(dml.LimitExceeded) as caught:
        dml_onnx.load(model, limits=limits)(_X)
    assert caught.value.allowed == getattr(limits, caught.value.limit)
    assert caught.value.needed >= caught.value.allowed
    return caught.value


def _strings(*texts: str) -> Any:
    return np.array(texts, object)


@pytest.mark.parametrize(
    ("node", "stored", "limit"),
    [
        (_node("Range", "a", "b", "c"), {"a": 0.0, "b": 1e30, "c": 1e-30}, "tensor_elements"),
        (_node("Tile", "a", "b"), {"a": np.zeros(4, np.float32), "b": [2**40]}, "tensor_elements"),
        (_node("Pad", "a", "b"), {"a": np.zeros(4, np.float32), "b": [2**40] * 2}, "tensor_elements"),
        (_node("Expand", "a", "b"), {"a": _strings("a"), "b": [2**15, 2**15]}, "tensor_elements"),
        (_node("StringConcat", "a", "b"), {"a": _LONG[:1], "b": _LONG[1:]}, "memory_bytes"),
        (helper.make_node("StringSplit", ["a"], ["y", "n"], delimiter=" "), {"a": _LONG}, "tensor_elements"),
        (_node("SplitToSequence", "a", output="s"), {"a": np.zeros(2 * 10**7, np.int8)}, "memory_bytes"),
        (
            _node("TfIdfVectorizer", "a", mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
                  ngram_counts=[0], ngram_indexes=[2**40], pool_int64s=[1]),
            {"a": [1, 2]},
            "tensor_elements",
        ),
        (_node("Einsum", *"aaa", equation="ab,cd,ef->"), {"a": _INTEGERS[:99, :99]}, "evaluator_steps"),
        (_node("Resize", *_RESIZED, mode="cubic"), {"a": _WIDE, "b": np.float32([9, 9])}, "evaluator_steps"),
        (_node("MatMul", "a", "a"), {"a": _INTEGERS}, "evaluator_steps"),
    ],
    ids=lambda each: each.op_type if isinstance(each, onnx.NodeProto) else "",
)  # fmt: skip
def test_evaluated_nodes_are_judged_first(node: onnx.NodeProto, stored: dict[str, Any], limit: str) -> None:
    error = _refusal(_model(node, **stored))
    assert error.limit == limit
    assert f"({node.op_type}-" in error.where


def test_strings_that_double_end_at_the_memory() -> None:
    nodes = [_node("StringConcat", f"s{n}", f"s{n}", output=f"s{n + 1}") for n in range(40)]
    error = _refusal(_model(*nodes, s0=_strings("a")), dml.Limits(memory_bytes=10**6))
    assert error.limit == "memory_bytes"
    assert "(StringConcat-20): output 's" in error.where


def test_long_names_are_no_part_of_messages() -> None:
    model = _model(_node("Nope", "x", name="n" * 10_000))
    with pytest.raises(dml.Unsupported) as caught:
        dml_onnx.load(model)(_X)
    assert len(str(caught.value)) < 2000


def test_what_is_folded_adds_up() -> None:
    model = _model(_node("ConstantOfShape", "n", output="a"), _node("EyeLike", "a", dtype=11), n=[600, 600])
    error = _refusal(model, dml.Limits(memory_bytes=4 * 10**6))
    assert "(EyeLike-20)" in error.where
    assert error.needed == pytest.approx(600 * 600 * 12, rel=0.01)


@pytest.mark.parametrize(
    ("pattern", "text"), [("(a+)+$", "a" * 40 + "b"), ("(a|a)*b", "a" * 40), ("a*a*a*a*a*b", "a" * 2000)]
)
def test_a_search_that_would_not_end_is_stopped(pattern: str, text: str) -> None:
    threads = threading.active_count()
    model = _model(_node("RegexFullMatch", "a", pattern=pattern), a=_strings(text))
    error = _refusal(model, dml.Limits(evaluator_seconds=0.2))
    assert error.limit == "evaluator_seconds"
    assert "(RegexFullMatch)" in error.where
    assert threading.active_count() == threads


@pytest.mark.parametrize("pattern", ["a+", "(a+)+", "(a|b)*", "a*a*a*b?a*"])
def test_searches_here_and_elsewhere_find_the_same(pattern: str) -> None:
    texts = ["", "aaaa", "ab", "\ud7ff\n", "a" * 500]
    assert full_matches(pattern, texts, "here") == [bool(re.fullmatch(pattern, each)) for each in texts]


def test_a_pattern_that_is_none_is_refused() -> None:
    for pattern in ("(", "(a+)+("):
        with pytest.raises(dml.InvalidArgument):
            dml_onnx.load(_model(_node("RegexFullMatch", "a", pattern=pattern), a=_strings("a" * 99)))(_X)


def _loop(trips: int, *body: onnx.NodeProto, outputs: int = 2) -> onnx.NodeProto:
    info = helper.make_tensor_value_info
    names = ["go", "next", "out"][:outputs]
    graph = helper.make_graph(
        [_node("Identity", "on", output="go"), *body],
        "body",
        [info(name, type, None) for name, type in (("i", 7), ("on", 9), ("z", 1))],
        [info(name, TensorProto.BOOL if name == "go" else TensorProto.FLOAT, None) for name in names],
    )
    return helper.make_node("Loop", ["trips", "", "x"], ["y", "all"][: outputs - 1], body=graph)


def test_trips_of_a_loop_are_steps() -> None:
    model = _model(_loop(2**60, _node("Neg", "z", output="next")), trips=np.array(2**60))
    assert _refusal(model, dml.Limits(evaluator_steps=10_000)).limit == "evaluator_steps"


def test_what_the_trips_of_a_loop_leave_adds_up_and_nothing_else() -> None:
    body = (_node("Neg", "z", output="next"), _node("Sin", "z", output="out"))
    limits = dml.Limits(memory_bytes=20_000)
    model = _model(_loop(100, *body), trips=np.array(100))
    assert dml_onnx.load(model, limits=limits)(np.ones(900, np.float32))["y"].shape == (900,)
    model = _model(_loop(100, *body, outputs=3), trips=np.array(100))
    with pytest.raises(dml.LimitExceeded, match="memory_bytes"):
        dml_onnx.load(model, limits=limits)(np.ones(900, np.float32))


def test_every_run_begins_anew() -> None:
    model = dml_onnx.load(_model(_loop(5, _node("Neg", "z", output="next")), trips=np.array(5)),
                          limits=dml.Limits(evaluator_steps=6000, kernel_steps=100))  # fmt: skip
    for _ in range(5):
        model(_X)


def test_kernels_are_counted_before_they_are_compiled() -> None:
    nodes = [_node("Expand", "x", "n", output="a"), _node("MatMul", "a", "w")]
    model = _model(*nodes, n=[40_000, 4], w=np.ones((4, 40), np.float32))
    error = _refusal(model, dml.Limits(kernel_steps=10**6))
    assert error.limit == "kernel_steps"


def test_compiling_ends_when_its_time_is_over() -> None:
    nodes = [_node("Neg", f"a{n}", output=f"a{n + 1}") for n in range(300)]
    model = _model(_node("Neg", "x", output="a0"), *nodes, _node("Neg", "a300"))
    assert _refusal(model, dml.Limits(compile_seconds=1e-3)).limit == "compile_seconds"


def test_nodes_are_counted_with_their_functions() -> None:
    model = _model(*(_node("Neg", "x", output=f"a{n}") for n in range(20)), _node("Neg", "x"))
    assert _refusal(model, dml.Limits(graph_parts=20)).limit == "graph_parts"
    dml_onnx.load(model, limits=dml.Limits(graph_parts=21))(_X)


def test_steps_of_recurrent_networks_are_parts() -> None:
    stored = {"w": np.ones((1, 4, 4), np.float32), "r": np.ones((1, 4, 4), np.float32), "n": [50_001, 1, 4]}
    nodes = [_node("Expand", "x", "n", output="a"), _node("RNN", "a", "w", "r", hidden_size=4)]
    assert _refusal(_model(*nodes, **stored)).limit == "graph_parts"


def test_trees_that_lead_in_a_circle_are_refused() -> None:
    ids = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3}
    sides = {"nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 2, 0]}
    leaves = {"target_treeids": [0], "target_nodeids": [2], "target_ids": [0], "target_weights": [1.0]}
    node = _node("TreeEnsembleRegressor", "z", domain="ai.onnx.ml", n_targets=1, nodes_values=[0.0] * 3,
                 nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], **ids, **sides, **leaves)  # fmt: skip
    with pytest.raises(dml.InvalidArgument, match="trees lead in a circle"):
        dml_onnx.load(_model(node, z=np.ones((1, 1), np.float32)))(_X)


def test_sequences_are_mapped_by_graphs() -> None:
    info = helper.make_tensor_value_info
    body = helper.make_graph([_node("Add", "a", "b", output="c")], "body",
                             [info(name, TensorProto.FLOAT, [4]) for name in "ab"],
                             [info("c", TensorProto.FLOAT, [4])])  # fmt: skip
    nodes = [
        _node("SequenceConstruct", "x", "w", output="s"),
        _node("SequenceMap", "s", "w", output="t", body=body),
        _node("ConcatFromSequence", "t", axis=0),
    ]
    y = dml_onnx.load(_model(*nodes, w=2 * _X))(_X)["y"]
    assert y.tolist() == [3.0] * 4 + [4.0] * 4


# Files


def _with_holes(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_file_is_no_larger_than_the_memory_even_if_it_is_a_hole(tmp_path: Path) -> None:
    error = _refusal(_with_holes(tmp_path / "m.onnx", 20 << 30))
    assert (error.limit, error.needed) == ("memory_bytes", 20 << 30)
    assert "m.onnx" in error.where


def _external(path: Path, sizes: list[int], **entries: str) -> Path:
    model = _model(_node("Add", "x", "w"))
    tensor = model.graph.initializer.add(name="w", data_type=1, dims=sizes, data_location=1)
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


def test_a_tensor_takes_what_its_sizes_need_of_a_file_with_holes(tmp_path: Path) -> None:
    _with_holes(tmp_path / "w.bin", 20 << 30)
    path = _external(tmp_path / "m.onnx", [4], offset="4096")
    assert dml_onnx.load(path, limits=_UNTRUSTED)(_X)["y"].tolist() == [1.0] * 4
    error = _refusal(_external(tmp_path / "m.onnx", [2**20]), dml.Limits(memory_bytes=10**6))
    assert error.limit == "memory_bytes"
    with pytest.raises(dml.InvalidArgument, match=r"length 17,179,869,184; its sizes need 16 bytes"):
        dml_onnx.load(_external(tmp_path / "m.onnx", [4], length=str(16 << 30)), limits=_UNTRUSTED)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    with pytest.raises(dml.InvalidArgument, match="not a file"):
        dml_onnx.load(tmp_path / "m.onnx")


def test_sparse_constants_are_no_larger_than_allowed() -> None:
    sparse = onnx.SparseTensorProto(dims=[2**20, 2**20])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "v"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64), "i"))
    constant = helper.make_node("Constant", [], ["w"], sparse_value=sparse)
    assert _refusal(_model(constant, _node("Neg", "w"))).limit == "tensor_elements"


def test_strings_of_a_file_take_no_more_than_they_are() -> None:
    """NumPy's own strings would all take as much as the longest: 4 GB."""
    model = _model(_node("Identity", "s"), s=_strings("a" * 10**5, *"b" * 10**4))
    assert dml_onnx.load(model, limits=_UNTRUSTED)(_X)["y"].shape == (10_001,)


def test_messages_are_sized_before_they_are_parsed() -> None:
    model = _model(_node("Neg", "x")).SerializeToString()
    many = b"\x6a\x00" * 40_000  # empty infos of values of a graph
    content = model + b"\x3a\x80\xf1\x04" + many
    assert onnx.ModelProto.FromString(content).graph.value_info[39_999].name == ""
    with pytest.raises(dml.LimitExceeded, match="what its messages take: memory_bytes"):
        dml_onnx.load(content, limits=dml.Limits(memory_bytes=4 * 10**6))
    descriptor = onnx.ModelProto.DESCRIPTOR
    assert parsed_size(content, descriptor, 10**9) > 40_000 * 100
    for end in range(0, 200, 7):  # parts of a message have a size, too
        assert parsed_size(content[:end], descriptor, 10**9) < 10**5
    large = _model(_node("Add", "x", "w"), w=np.zeros(10**6, np.float32)).SerializeToString()
    assert parsed_size(large, descriptor, 10**9) < 1.01 * len(large)
    group = b"\xa3\x06\xa4\x06"  # of a field that the message does not have: protobuf skips it
    assert parsed_size(group + content, descriptor, 10**9) > 40_000 * 100


# Doors


def test_sessions_have_limits() -> None:
    model = _model(_node("Range", "a", "b", "c"), a=0.0, b=1e30, c=1e-30).SerializeToString()
    session = dml_onnx.InferenceSession(model, limits=_UNTRUSTED)
    with pytest.raises(dml.LimitExceeded, match="tensor_elements"):
        session.run(None, {"x": _X})
    with pytest.raises(dml.InvalidArgument, match=r"limits: 5; a dml\.Limits is needed"):
        dml_onnx.InferenceSession(model, limits=5)  # type: ignore[arg-type]


def test_threads_have_meters_of_their_own() -> None:
    model = dml_onnx.load(_model(_loop(5, _node("Neg", "z", output="next")), trips=np.array(5)),
                          limits=dml.Limits(evaluator_steps=6000))  # fmt: skip
    failed = list[BaseException]()

    def run() -> None:
        try:
            for _ in range(20):
                model(_X)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []


@pytest.mark.parametrize("command", ["run", "check", "explain"])
def test_commands_have_limits(command: str, tmp_path: Path) -> None:
    model = _model(_node("Range", "a", "b", "c"), a=0.0, b=1e30, c=1e-30)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    done = CliRunner().invoke(main, [command, str(path), "--untrusted", "--limit", "tensor_elements=1e6"])
    assert done.exit_code == 1
    assert "tensor_elements 1e+60; the limit is 1e+06" in " ".join(done.output.split())
