"""Models as Python values, written to a temporary folder, and a device that only adds one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel
from opendml.spec.enums import ExecutionFlags
from opendml.spec.operator_desc import OperatorDesc

Buffer = npt.NDArray[np.uint8] | None
Load = Callable[[Any], DispatchModel]


class AddOneBound:
    """Adds one to each FLOAT32 of the first input on every dispatch."""

    def __init__(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)

    def dispatch(self) -> None:
        source, target = self.inputs[0], self.outputs[0]
        assert source is not None
        assert target is not None
        count = min(source.size, target.size) // 4
        target[: count * 4].view(np.float32)[:] = source[: count * 4].view(np.float32) + 1


class AddOneCompiled:
    def bind(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> AddOneBound:
        return AddOneBound(inputs, outputs)


class AddOneDevice:
    """Takes any desc. Remembers the flags that it was given."""

    def __init__(self) -> None:
        self.flags: list[ExecutionFlags] = []

    def create_operator(self, desc: OperatorDesc) -> OperatorDesc:
        return desc

    def compile_operator(self, operator: OperatorDesc, flags: ExecutionFlags) -> AddOneCompiled:
        self.flags.append(flags)
        return AddOneCompiled()


@pytest.fixture
def device() -> AddOneDevice:
    return AddOneDevice()


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Writes a model to a file, as JSON unless it is text already, and reads it back."""

    def load(model: Any) -> DispatchModel:
        path = tmp_path / "model.json"
        path.write_text(model if isinstance(model, str) else json.dumps(model), encoding="utf-8")
        return dxdispatch.load(path, tmp_path)

    return load


@pytest.fixture
def model() -> dict[str, Any]:
    """CELU from x to y, then print and write y."""
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 3]}
    return {
        "resources": {
            "x": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, -1, -2, -3]},
            "y": {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 6, "value": 0}},
        },
        "dispatchables": {
            "celu": {
                "type": "DML_OPERATOR_ACTIVATION_CELU",
                "desc": {"InputTensor": tensor, "OutputTensor": dict(tensor), "Alpha": 1.0},
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "celu",
                "bindings": {"InputTensor": "x", "OutputTensor": "y"},
            },
            {"type": "print", "resource": "y"},
            {"type": "writeFile", "resource": "y", "targetPath": "y.npy"},
        ],
    }
