"""What the CUDA target says where it cannot run, and that the rest of opendml does not need it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import opendml as dml
from opendml.cli import main
from opendml.errors import DeviceRemoved, Unsupported
from opendml.targets.cuda import api
from tests.cuda.fake_driver import FakeDriver, Result, use

pytest.importorskip("cuda.bindings.nvrtc")

pytestmark = [pytest.mark.devices, pytest.mark.usefixtures("forgotten")]

MISSING = RuntimeError("Failed to dlopen libcuda.so.1")


@pytest.mark.parametrize(
    ("fake", "kind", "error", "text"),
    [
        (FakeDriver(MISSING), "cuda", Unsupported, "no NVIDIA driver was found .*libcuda"),
        (FakeDriver(100), "cuda", Unsupported, "the driver finds no device .*CUDA_VISIBLE_DEVICES"),
        (FakeDriver(34), "cuda", Unsupported, "the driver finds no device"),
        (FakeDriver(803), "cuda", Unsupported, "the driver does not start .CUDA_ERROR_SYSTEM_DRIVER_M"),
        (FakeDriver(version=12040), "cuda", Unsupported, r"the driver is too old: it has CUDA 12.4; NVRTC 1"),
        (FakeDriver(), "cuda:2", dml.InvalidArgument, "device 2; there are 2, the first is 0"),
        (FakeDriver(major=7), "cuda:1", Unsupported, r"Old GPU has compute capability 7.5; 8.0 is needed"),
    ],
    ids=["no driver", "no device", "stub", "does not start", "old driver", "index", "old device"],
)
def test_device_that_cannot_be_used_says_why_and_the_cpu_works_on(
    monkeypatch: pytest.MonkeyPatch, fake: FakeDriver, kind: str, error: type[Exception], text: str
) -> None:
    use(monkeypatch, fake)
    x = np.array([-1.0, 2.0], np.float32)
    with pytest.raises(error, match=f"^cuda: {text}"):
        dml.activation_relu(x, device=kind)
    with pytest.raises(error, match=f"^cuda: {text}"):
        dml.Device(kind)
    np.testing.assert_array_equal(dml.activation_relu(x), [0, 2])


def test_command_line_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeDriver(MISSING))
    model = Path(__file__).parents[2] / "examples" / "celu.json"
    result = CliRunner().invoke(main, ["run", "--device", "cuda", str(model)])
    assert result.exit_code == 1
    assert "no NVIDIA driver was found" in result.stderr


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (2, Unsupported, "out of memory: a task; 10 of 20 bytes are free"),
        (209, Unsupported, "the driver is too old: a task"),
        (222, Unsupported, "the driver is too old: a task"),
        (700, DeviceRemoved, "a task: CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_driver_errors_say_what_happened(
    monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception], text: str
) -> None:
    use(monkeypatch, FakeDriver())
    with pytest.raises(error, match=text):
        api.check((Result(code),), "a task")


def test_opendml_works_without_cuda_packages() -> None:
    code = (
        "import sys; sys.modules['cuda'] = None\n"
        "import numpy, opendml as dml\n"
        "from opendml.targets.cuda.driver import device\n"
        "assert dml.activation_relu(numpy.array([-1.0, 2.0], 'float32'))[1] == 2\n"
        "try: device()\n"
        "except dml.Unsupported as error: assert 'the extra `cuda`' in str(error), error\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
