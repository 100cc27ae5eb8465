"""What the CUDA target says where it cannot run, and that the rest of opendml does not need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from opendml.errors import DeviceRemoved, Unsupported
from opendml.targets.cuda import driver


class Codes:
    """A driver with the names of its results only."""

    class CUresult:
        CUDA_ERROR_OUT_OF_MEMORY = 2
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
        CUDA_ERROR_NO_BINARY_FOR_GPU = 209

    @staticmethod
    def cuMemGetInfo() -> tuple[int, int, int]:  # noqa: N802 - the driver's name
        return Result(0), 10, 20


class Result(int):
    """A result of the driver."""

    @property
    def value(self) -> int:
        return int(self)

    @property
    def name(self) -> str:
        return f"CUDA_ERROR_{int(self)}"


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (2, Unsupported, "out of memory: a task; 10 of 20 bytes are free"),
        (209, Unsupported, "the driver is too old: a task"),
        (700, DeviceRemoved, "a task: CUDA_ERROR_700"),
    ],
)
def test_driver_errors_say_what_happened(
    monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception], text: str
) -> None:
    monkeypatch.setattr(driver, "driver_module", lambda: Codes)
    with pytest.raises(error, match=text):
        driver.check((Result(code),), "a task")


def test_opendml_works_without_cuda_packages() -> None:
    code = (
        "import sys; sys.modules['cuda'] = None\n"
        "import numpy, opendml as dml\n"
        "from opendml.targets.cuda.driver import device\n"
        "assert dml.activation_relu(numpy.array([-1.0, 2.0], 'float32'))[1] == 2\n"
        "try: device()\n"
        "except dml.Unsupported as error: assert 'pip install opendml[cuda]' in str(error), error\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
