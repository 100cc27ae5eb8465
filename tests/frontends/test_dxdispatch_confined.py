"""Which files a model of DxDispatch, or a serialized graph, may read and write: it is taken as hostile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import opendml as dml
from opendml.cli import main
from opendml.frontends import dxdispatch
from tests.printed import results_in

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has neither such links nor pipes")
SECRET = np.array([42], np.float32)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders for a model and for outputs; a secret is above them, another in the current folder."""
    for name in ("model/deep", "out", "home"):
        (tmp_path / name).mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "home"):
        np.save(folder / "secret.npy", SECRET)
    (tmp_path / "model" / "link.npy").symlink_to("../secret.npy")
    (tmp_path / "model" / "up").symlink_to("..")
    (tmp_path / "out" / "link.npy").symlink_to("../secret.npy")
    (tmp_path / "out" / "up").symlink_to("..")
    np.save(tmp_path / "model" / "own.npy", SECRET + 1)
    np.save(tmp_path / "model" / "deep" / "own.npy", SECRET + 2)
    (tmp_path / "model" / "inner.npy").symlink_to("deep/own.npy")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path


def model(place: Path, source: str | None = None, target: str | None = None) -> Path:
    """A model that prints a file and writes one."""
    values: Any = {"sourcePath": source} if source else [1]
    resource = {"initialValues": values} | ({} if source else {"initialValuesDataType": "FLOAT32"})
    commands: list[dict[str, Any]] = [{"type": "print", "resource": "x"}]
    if target is not None:
        commands.append({"type": "writeFile", "resource": "x", "targetPath": target})
    path = place / "model" / "model.json"
    path.write_text(json.dumps({"resources": {"x": resource}, "dispatchables": {}, "commands": commands}))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["run", "--device", "reference", *map(str, arguments)])


@pytest.mark.parametrize(
    ("source", "value"), [("own.npy", 43), ("deep/own.npy", 44), ("deep/../own.npy", 43), ("inner.npy", 44)]
)
def test_files_in_the_models_folder_are_read(source: str, value: int, place: Path) -> None:
    assert results_in(run(model(place, source)).stdout) == f"Resource 'x': {value}\n"
    assert results_in(run(model(place, str(place / "model" / source))).stdout) == f"Resource 'x': {value}\n"


READ_OUTSIDE = ["../secret.npy", "link.npy", "up/secret.npy", "secret.npy", "/etc/hostname", "{}/secret.npy"]


@pytest.mark.parametrize("source", READ_OUTSIDE)
@pytest.mark.parametrize("command", ["run", "check --runs", "explain", "export -o out"])
def test_no_other_file_is_read(source: str, command: str, place: Path) -> None:
    path = model(place, source.format(place))
    if command == "explain":
        text = json.loads(path.read_text())
        text["dispatchables"] = {"d": {"type": "onnx", "sourcePath": source.format(place)}}
        path.write_text(json.dumps(text))
    result = CliRunner().invoke(main, [*command.split(), str(path)])
    assert result.exit_code in (1, 2)
    message = result.stdout + result.stderr
    assert f"sourcePath: expected a file in {place / 'model'} (--input-directory; --allow-any-path" in message


@pytest.mark.parametrize("source", READ_OUTSIDE)
def test_any_file_is_read_if_the_user_allows_it(source: str, place: Path) -> None:
    if source.startswith("/etc"):
        pytest.skip("no .npy file")
    result = run(model(place, source.format(place)), "--allow-any-path")
    assert results_in(result.stdout) == "Resource 'x': 42\n", result.stderr
    loaded = dxdispatch.load(model(place, source.format(place)), allow_any_path=True)
    assert loaded.resources["x"].size_in_bytes == 4


@pytest.mark.parametrize("target", ["y.npy", "new/to/y.npy", "{}/out/y.npy"])
def test_files_in_the_output_directory_are_written(target: str, place: Path) -> None:
    result = run(model(place, target=target.format(place)), "--output-directory", place / "out")
    assert result.exit_code == 0, result.stderr
    assert np.load(place / "out" / Path(target.format(place))).tolist() == [1]


WRITTEN_OUTSIDE = ["../secret.npy", "link.npy", "up/secret.npy", "{}/secret.npy", "up/new/y.npy", "pipe.npy"]


@pytest.mark.parametrize("target", WRITTEN_OUTSIDE)
@pytest.mark.parametrize("command", ["run", "check --runs"])
def test_no_other_file_is_written(target: str, command: str, place: Path) -> None:
    """What `check` judges is written in the current directory."""
    folder = place / "out" if command == "run" else place / "home"
    for link in ("link.npy", "up"):
        if not (folder / link).is_symlink():
            (folder / link).symlink_to("../secret.npy" if link == "link.npy" else "..")
    os.mkfifo(folder / "pipe.npy")
    options = ["--output-directory", str(place / "out")] if command == "run" else []
    path = str(model(place, target=target.format(place)))
    result = CliRunner().invoke(main, [*command.split(), path, *options])
    assert result.exit_code in (1, 2)
    message = result.stdout + result.stderr
    assert "$.commands[1].targetPath: expected " in message
    if target != "pipe.npy":
        where = folder if command == "run" else "."
        assert f"a file in {where} (--output-directory; --allow-any-path" in message
    assert np.load(place / "secret.npy").tolist() == [42]
    assert not (place / "new").exists()


@pytest.mark.parametrize("target", ["../secret.npy", "link.npy", "up/secret.npy", "{}/secret.npy"])
def test_any_file_is_written_if_the_user_allows_it(target: str, place: Path) -> None:
    path = model(place, target=target.format(place))
    result = run(path, "--output-directory", place / "out", "--allow-any-path")
    assert result.exit_code == 0, result.stderr
    assert np.load(place / "secret.npy").tolist() == [1]


def _swapped(path: Path, to: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def test_a_link_that_is_swapped_in_is_not_followed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check when the model is read sees a file; when it is opened there is a link."""
    path = model(place, "own.npy", "y.npy")
    loaded = dxdispatch.load(path, place / "out")
    program = dxdispatch.prepare(loaded, dml.Device("reference"))
    _swapped(place / "out" / "y.npy", "../secret.npy")
    with pytest.raises(dml.Error, match=r"\$\.commands\[1\]: cannot write .*not in the folder"):
        list(program.run())
    source = dxdispatch.Folders.source

    def swapped(folders: dxdispatch.Folders, name: str) -> Path | None:
        found = source(folders, name)
        _swapped(place / "model" / "own.npy", "../secret.npy")
        return found

    monkeypatch.setattr(dxdispatch.Folders, "source", swapped)
    with pytest.raises(dml.InvalidArgument, match=r"own\.npy: .*not in the folder"):
        dxdispatch.load(path, place / "out")
    assert np.load(place / "secret.npy").tolist() == [42]


def test_a_file_is_written_whole_or_not_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model(place, target="y.npy")
    np.save(place / "out" / "y.npy", SECRET)
    before = sorted(os.listdir(place / "out"))

    def full(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full)
        result = run(path, "--output-directory", place / "out")
    assert (result.exit_code, result.stderr.count("No space left on device")) == (1, 1)
    assert np.load(place / "out" / "y.npy").tolist() == [42]
    assert sorted(os.listdir(place / "out")) == before


# Serialized graphs, and models in files of their own


@pytest.fixture
def graph(place: Path) -> Path:
    """A serialized graph with a constant in a file of its own."""
    tensor = dml.TensorDesc(dml.FLOAT32, [4])
    device = dml.Device("reference")
    add = device.create_operator(dml.descs.ElementWiseAdd1(tensor, tensor, tensor))
    desc = dml.GraphDesc(
        1,
        1,
        [dml.OperatorNode(add), dml.ConstantNode(np.arange(4, dtype=np.float32), "w")],
        [dml.InputEdge(0, 0, 0, "x")],
        [dml.OutputEdge(0, 0, 0, "y")],
        [dml.IntermediateEdge(1, 0, 0, 1)],
    )
    path = place / "model" / "graph.bin"
    files = dml.serialized.write(dml.serialized.SerializedGraph.of(desc), path)
    assert [file.parent for file in files] == [path.parent] * 2
    return path


def foreign(place: Path, source: str, kind: str = "dmlSerializedGraph") -> Path:
    """A JSON model that runs a serialized graph."""
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "value": 1}}
    bindings = {"x": "x", "y": "y"}
    text = {
        "resources": {"x": resource, "y": resource},
        "dispatchables": {"g": {"type": kind, "sourcePath": source}},
        "commands": [
            {"type": "dispatch", "dispatchable": "g", "bindings": bindings},
            {"type": "print", "resource": "y"},
        ],
    }
    path = place / "model" / "foreign.json"
    path.write_text(json.dumps(text))
    return path


def test_graphs_and_their_constants_lie_in_the_models_folder(graph: Path, place: Path) -> None:
    assert results_in(run(foreign(place, "graph.bin")).stdout) == "Resource 'y': 1, 2, 3, 4\n"
    outside = place / "graph.bin"
    graph.rename(outside)
    assert "expected a file in" in run(foreign(place, "../graph.bin")).stderr
    assert run(foreign(place, "../graph.bin"), "--allow-any-path").exit_code == 2  # its constant is not there
    graph.symlink_to(outside)
    assert "expected a file in" in run(foreign(place, "graph.bin")).stderr


def _constant(graph: Path) -> Path:
    (file,) = graph.parent.glob("graph.*w.bin")
    return file


@pytest.mark.parametrize("load", [dml.serialized.load, dml.serialized.read])
def test_a_constant_does_not_lead_out_of_the_graphs_folder(
    load: Callable[[Path], object], graph: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _constant(graph)
    file.rename(place / "w.bin")
    file.symlink_to("../w.bin")
    with pytest.raises(dml.InvalidArgument, match="leads out of its folder"):
        load(graph)
    monkeypatch.setattr("opendml.frontends.serialized.graph.within", lambda *_: "the link came later")
    with pytest.raises(dml.InvalidArgument, match="not in the folder"):
        load(graph)


def test_a_serialized_graph_reads_inputs_in_its_folder_alone(graph: Path, place: Path) -> None:
    np.save("x.npy", np.full(4, 42, np.float32))
    assert f"no .npy file of that name in {graph.parent}" in run(graph).stdout
    assert "from 'x.npy'" in run(graph, "--allow-any-path").stdout
    (graph.parent / "x.npy").symlink_to(place / "home" / "x.npy")
    assert f"no .npy file of that name in {graph.parent}" in run(graph).stdout
    assert "from 'x.npy'" in run(graph, "--input-directory", ".").stdout


def test_a_serialized_graph_writes_outputs_in_the_output_directory_alone(graph: Path, place: Path) -> None:
    (place / "out" / "y.npy").symlink_to("../secret.npy")
    result = run(graph, "--output-directory", place / "out")
    assert result.exit_code == 1
    assert "not in the folder" in result.stderr
    assert np.load(place / "secret.npy").tolist() == [42]


def test_exported_files_replace_links(graph: Path, place: Path) -> None:
    (place / "out" / "graph.bin").symlink_to("../secret.npy")
    (place / "out" / _constant(graph).name).symlink_to("../secret.npy")
    result = CliRunner().invoke(main, ["export", str(graph), "-o", str(place / "out")])
    assert result.exit_code == 0, result.stderr
    assert np.load(place / "secret.npy").tolist() == [42]
    assert (place / "out" / "graph.bin").read_bytes() == graph.read_bytes()


def test_graphs_are_exported_whole_or_not_at_all(
    graph: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = dml.serialized.read(graph)
    target = place / "out" / "graph.bin"
    files = dml.serialized.write(written, target)
    before = {path: path.read_bytes() for path in (place / "out").iterdir() if path.is_file()}
    (place / "out" / files[1].name).unlink()
    (place / "out" / files[1].name).mkdir()  # the second file cannot be written
    with pytest.raises(dml.Error, match=f"cannot write {files[1]}"):
        dml.serialized.write(dml.serialized.read(graph), target)
    assert target.read_bytes() == before[target]
    assert not list((place / "out").glob("*.tmp"))


def test_onnx_models_read_tensors_in_their_folder_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    made = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y], [tensor]))
    made.opset_import[0].version, made.ir_version = 18, 8
    path = place / "model" / "m.onnx"
    path.write_bytes(made.SerializeToString())
    np.arange(4, dtype=np.float32).tofile(place / "model" / "w.bin")
    assert results_in(run(foreign(place, "m.onnx", "onnx")).stdout) == "Resource 'y': 1, 2, 3, 4\n"
    (place / "model" / "w.bin").rename(place / "w.bin")
    (place / "model" / "w.bin").symlink_to("../w.bin")
    for load in (dml.onnx.load, dml.onnx.InferenceSession):
        with pytest.raises(dml.InvalidArgument, match="must be in the model's folder"):
            load(path)
    assert "must be in the model's folder" in run(foreign(place, "m.onnx", "onnx")).stderr
    monkeypatch.setattr("opendml.frontends.onnx.model_file.within", lambda *_: "the link came later")
    with pytest.raises(dml.InvalidArgument, match="not in the folder"):
        dml.onnx.load(path)
    path.rename(place / "m.onnx")
    path.symlink_to("../m.onnx")
    assert "expected a file in" in run(foreign(place, "m.onnx", "onnx")).stderr


def test_outputs_of_onnx_models_stay_in_their_folder(place: Path) -> None:
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [4]) for name in ("x", "../secret"))
    node = onnx.helper.make_node("Neg", ["x"], ["../secret"])
    made = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    made.opset_import[0].version, made.ir_version = 18, 8
    (place / "model" / "m.onnx").write_bytes(made.SerializeToString())
    result = run(place / "model" / "m.onnx", "--output-directory", place / "out")
    assert result.exit_code == 0, result.stderr
    written = place / "out" / ".._secret.npy"
    assert written.is_file()
    written.unlink()
    written.symlink_to("../secret.npy")
    result = run(place / "model" / "m.onnx", "--output-directory", place / "out")
    assert result.exit_code == 1
    assert "not in the folder" in result.stderr
    assert np.load(place / "secret.npy").tolist() == [42]


def test_pictures_are_decoded_by_the_two_formats_alone(place: Path) -> None:
    """For PostScript Pillow runs a program."""
    pytest.importorskip("PIL")
    (place / "model" / "a.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 2 2\n%%EndComments\n"
    )
    path = model(place, "a.png")
    text = json.loads(path.read_text())
    text["resources"]["x"]["initialValuesDataType"] = "FLOAT32"
    path.write_text(json.dumps(text))
    assert "cannot identify image file" in run(path).stderr
