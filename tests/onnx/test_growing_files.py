"""Small ONNX files that say much are loaded and run at once, in a process of its own that may not hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
from onnx import NodeProto, TensorProto, helper

SECONDS = 300
"""How long a file may take on a busy machine; before, they took hours or all memory."""
RUN = """
import sys
import numpy as np
from opendml import onnx

session = onnx.InferenceSession(sys.argv[1])
given = session.get_inputs()[0]
type = np.int64 if "int64" in given.type else np.float32
x = np.arange(np.prod(given.shape, dtype=int)).reshape(given.shape).astype(type)
(y,) = session.run(None, {given.name: x})
print(y.shape, float(y.ravel()[-1]))
"""


def output_of(folder: Path, nodes: list[NodeProto], shape: list[int], type: int = TensorProto.FLOAT) -> str:
    """What a model says of its output in another process: its shape and its last element."""
    first, last = nodes[0].input[0], nodes[-1].output[0]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(first, type, shape)],
        [helper.make_tensor_value_info(last, type, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    command = [sys.executable, "-c", RUN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_joins_of_a_tensor_with_itself(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", [f"t{n}", f"t{n}"], [f"t{n + 1}"], axis=0) for n in range(20)]
    assert output_of(tmp_path, nodes, [2]) == f"({2 << 20},) 1.0"


def test_a_window_that_is_mostly_padding(tmp_path: Path) -> None:
    size = 2**30
    pads = [size - 1, size - 1, 0, 0]
    nodes = [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[size, size], pads=pads)]
    assert output_of(tmp_path, nodes, [1, 1, 2, 2]) == "(1, 1, 2, 2) 1.5"


def test_elements_gathered_at_themselves(tmp_path: Path) -> None:
    nodes = [helper.make_node("GatherElements", [f"p{n}", f"p{n}"], [f"p{n + 1}"], axis=0) for n in range(40)]
    assert output_of(tmp_path, nodes, [8], TensorProto.INT64) == "(8,) 7.0"


def test_a_chain_of_thousands_of_nodes(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", [f"t{n}", f"t{n}"], [f"t{n + 1}"]) for n in range(5000)]
    nodes.append(helper.make_node("Mul", ["t5000", "t5000"], ["y"]))
    assert output_of(tmp_path, nodes, [2]) == "(2,) inf"
