"""Programs that say `import pydirectml` or `import directml` run unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opendml as dml

SOURCES = Path(dml.__file__).parents[1]

NETWORK = """
import {module} as dml
import numpy as np
import sys
import weights as own
from helper import kernel

input_bindings = []

def append_input_tensor(builder: dml.GraphBuilder, input_bindings: list, desc: dml.TensorDesc, data):
    tensor = dml.input_tensor(builder, len(input_bindings), desc)
    input_bindings.append(dml.Binding(tensor, data))
    return tensor

device = dml.Device(True, True)
builder = dml.GraphBuilder(device)
data_type = dml.TensorDataType.FLOAT32
flags = dml.TensorFlags.OWNED_BY_DML

input = dml.input_tensor(builder, 0, dml.TensorDesc(data_type, [1, 1, 6, 6]))
input_bindings.append(dml.Binding(input, np.load(sys.argv[1])))
weight = append_input_tensor(builder, input_bindings, dml.TensorDesc(data_type, flags, [2, 1, 3, 3]), kernel)
bias = append_input_tensor(builder, input_bindings, dml.TensorDesc(data_type, flags, [1, 2, 1, 1]), own.BIAS)
conv = dml.convolution(
    input, weight, bias, strides = [1, 1], start_padding = [1, 1], end_padding = [1, 1],
    fused_activation = dml.FusedActivation(dml.OperatorType.ACTIVATION_RELU))
pool = dml.max_pooling(conv, window_sizes = [2, 2], strides = [2, 2])
join = dml.join([pool.values, pool.values], 1)
flat = dml.reinterpret(join, dml.TensorDataType.FLOAT32, [1, 1, 1, 36], None)
soft = dml.{softmax}(flat)

op = builder.build(dml.ExecutionFlags.NONE, [soft])
output_data = device.compute(op, input_bindings, [soft])
output_tensor = np.array(output_data[0], np.float32)
np.save(sys.argv[2], output_tensor)
if __name__ == "__main__":
    print(sys.argv[0], len(sys.argv))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-m", "opendml.pydirectml", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("module", "softmax"), [("pydirectml", "activation_soft_max"), ("directml", "activation_softmax")]
)
def test_a_program_runs_as_it_is(module: str, softmax: str, tmp_path: Path) -> None:
    image = np.random.default_rng(1).standard_normal((6, 6))
    kernel, bias = np.linspace(-1, 1, 18).reshape(2, 1, 3, 3), np.array([0.5, -0.5])
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "network.py").write_text(NETWORK.format(module=module, softmax=softmax))
    (scripts / "helper.py").write_text(f"import numpy as np\nkernel = np.array({kernel.tolist()})\n")
    (scripts / "weights.py").write_text(f"import numpy as np\nBIAS = np.array({bias.tolist()})\n")
    np.save(tmp_path / "image.npy", image)
    done = run(tmp_path, "scripts/network.py", "image.npy", "out.npy")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "scripts/network.py 3\n"
    x = image.astype(np.float32).reshape(1, 1, 6, 6)
    y = dml.convolution(
        x,
        kernel.astype(np.float32),
        bias.astype(np.float32).reshape(1, 2, 1, 1),
        start_padding=[1, 1],
        end_padding=[1, 1],
        fused_activation=dml.descs.ActivationRelu(),
    )
    y = dml.max_pooling2(y, window_size=[2, 2], strides=[2, 2])
    exact = np.exp(np.concatenate([y, y], 1).reshape(36).astype(np.float64))
    np.testing.assert_allclose(np.load(tmp_path / "out.npy").ravel(), exact / exact.sum(), rtol=1e-5)


NEWEST = """
import sys

import numpy as np

import directml as dml


def layer(graph: dml.Graph, x: dml.Expression, array, **options):
    return dml.convolution(x, graph.constant(array), fused_activation=dml.FusedActivation.relu(), **options)


def main(argv):
    device = dml.Device(use_gpu=True)
    graph = dml.Graph(device)
    x = graph.input([1, 1, 6, 6], name="image")
    w = graph.input([2, 1, 3, 3], owned=True)
    y = dml.convolution(x, w, start_padding=[1, 1], end_padding=[1, 1])
    y = layer(graph, y, np.ones((1, 2, 1, 1), np.float32))
    values, indices = dml.max_pooling(y, window_sizes=[2, 2], strides=[2, 2])
    assert indices is None
    op = graph.compile([dml.activation_softmax(dml.reinterpret(values, [1, 9]), axes=[1]), values])
    op.initialize({w: np.load(argv[2])})
    buffer, *_ = op({"image": np.load(argv[1])}, readback=False)
    result, *_ = op.dispatch({x: np.load(argv[1])})
    assert np.array_equal(result, buffer.numpy())
    try:
        op({x: np.zeros((6, 6), np.int32)})
    except ValueError as error:
        print(str(result.dtype), "astype" in str(error))
    np.save(argv[3], result)


if __name__ == "__main__":
    main(sys.argv)
"""


def test_a_program_of_the_newest_interface_runs_as_it_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    image, kernel = rng.standard_normal((6, 6)), rng.standard_normal((2, 1, 3, 3))
    (tmp_path / "newest.py").write_text(NEWEST)
    np.save(tmp_path / "image.npy", image)
    np.save(tmp_path / "kernel.npy", kernel)
    done = run(tmp_path, "newest.py", "image.npy", "kernel.npy", "out.npy")
    assert (done.returncode, done.stdout) == (0, "float32 True\n"), done.stderr
    y = dml.convolution(
        image.astype(np.float32).reshape(1, 1, 6, 6),
        kernel.astype(np.float32),
        start_padding=[1, 1],
        end_padding=[1, 1],
    )
    y = np.maximum(y.sum(1), 0).reshape(3, 2, 3, 2).max((1, 3)).reshape(9)
    exact = np.exp(y.astype(np.float64))
    np.testing.assert_allclose(np.load(tmp_path / "out.npy").ravel(), exact / exact.sum(), rtol=1e-5)


def test_errors_have_the_traceback_of_the_script_and_its_exit_status(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import pydirectml\n\n\npydirectml.nothing()\n")
    done = run(tmp_path, "wrong.py")
    assert done.returncode == 1
    assert 'wrong.py", line 4' in done.stderr
    assert "has no attribute 'nothing'" in done.stderr
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(7)\n")
    assert run(tmp_path, "ends.py").returncode == 7
    missing = run(tmp_path, "none.py")
    assert (missing.returncode, missing.stderr) == (1, "opendml.pydirectml: no script none.py\n")
    assert "usage: python -m opendml.pydirectml SCRIPT.py" in run(tmp_path).stderr
