"""Makes what the engines read: `python -m benchmarks.models.prepare CASE TYPE FOLDER`.

A folder has `model.onnx` and `inputs.npz`, of networks of PyTorch also `module.pt`. With ONNX Runtime it
also has `expected.npz` and `work.json`. The expected outputs are those of ONNX Runtime in float32: of a
float16 model, those of the float32 model for the same inputs; of an 8-bit model, its own without ONNX
Runtime's optimizations, so with float32 products between the conversions that the model prescribes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.models.cases import CASES, Array, Case
from benchmarks.models.work import ITEM_BYTES, Work, count


def folder_of(root: Path, case: Case, type: str) -> Path:
    """Return the folder of a case in a type."""
    return root / case.name / type


def is_ready(folder: Path) -> bool:
    """Whether a folder is there; one that was made without ONNX Runtime is made again once that is here."""
    return (folder / "work.json").exists() or (folder.is_dir() and find_spec("onnxruntime") is None)


def prepare(case: Case, type: str, root: Path) -> None:
    """Make the folder of a case in a type, and that in float32 before; folders that are ready stay."""
    folder = folder_of(root, case, type)
    if is_ready(folder):
        return
    made = folder.with_name(f"{type}.{os.getpid()}")
    made.mkdir(parents=True)
    try:
        if type == "float32":
            _make_float32(case, made)
        else:
            prepare(case, "float32", root)
            _convert(case, type, folder_of(root, case, "float32"), made)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _make_float32(case: Case, folder: Path) -> None:
    inputs, path = case.inputs(np.random.default_rng(0)), folder / "model.onnx"
    if case.is_network:
        import torch

        from benchmarks.models.networks import export, make

        network = make(case, inputs)
        torch.save(network, folder / "module.pt")
        export(network, inputs, path)
        del network
    elif case.package == "onnx":
        import onnx

        from benchmarks.models.conversions import with_random_weights

        onnx.save(with_random_weights(onnx.load(case.path)), path)
    else:
        shutil.copyfile(case.path, path)
    _write_inputs(folder, inputs)
    if find_spec("onnxruntime"):
        expected = _run(path, inputs)
        operations, weights, values = count(path, inputs, sum(each.size for each in expected))
        counts = {"operations": operations, "weights": weights, "values": values}
        (folder / "counts.json").write_text(json.dumps(counts))
        _write_expected(folder, "float32", expected, counts)


def _convert(case: Case, type: str, source: Path, folder: Path) -> None:
    from benchmarks.models.conversions import to_float16, to_int8, to_int8_dynamic

    inputs, model = load_arrays(source / "inputs.npz"), source / "model.onnx"
    if type == "float16":
        to_float16(model, folder / "model.onnx")
        inputs = {name: _in_float16(array) for name, array in inputs.items()}
        expected = _run(model, {name: _in_float32(array) for name, array in inputs.items()})
        if case.is_network:
            import torch

            module = torch.load(source / "module.pt", weights_only=False)
            torch.save(module.half(), folder / "module.pt")
    else:
        convert = partial(to_int8 if type == "int8" else to_int8_dynamic, inputs=case.inputs)
        convert(model, folder / "model.onnx")
        expected = _run(folder / "model.onnx", inputs, optimize=False)
    _write_inputs(folder, inputs)
    _write_expected(folder, type, expected, json.loads((source / "counts.json").read_text()))


def _in_float16(array: Array) -> Array:
    return array.astype(np.float16) if array.dtype == np.float32 else array


def _in_float32(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _run(path: Path, inputs: dict[str, Array], optimize: bool = True) -> list[Array]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs: list[Array] = session.run(None, inputs)
    if not all(np.isfinite(each).all() for each in outputs):
        raise ValueError("ONNX Runtime gives values that are not finite")
    return outputs


def _write_inputs(folder: Path, inputs: dict[str, Array]) -> None:
    np.savez(folder / "inputs.npz", **inputs)  # type: ignore[arg-type]


def _write_expected(folder: Path, type: str, expected: Sequence[Array], counts: dict[str, int]) -> None:
    np.savez(folder / "expected.npz", **{f"y{number}": each for number, each in enumerate(expected)})  # type: ignore[arg-type]
    wide = 2 if type == "float16" else 4
    work = Work(counts["operations"], counts["weights"] * ITEM_BYTES[type] + counts["values"] * wide)
    (folder / "work.json").write_text(json.dumps(asdict(work)))


def load_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file by name, in the order in which they were written."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def load_work(folder: Path) -> Work | None:
    """Return the work of the model in a folder; None where it was made without ONNX Runtime."""
    path = folder / "work.json"
    return Work(**json.loads(path.read_text())) if path.exists() else None


if __name__ == "__main__":
    prepare(CASES[sys.argv[1]], sys.argv[2], Path(sys.argv[3]))
