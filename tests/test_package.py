"""The distributions: their files, and that the wheel works in an environment of its own."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import MadeOnce
from tests.test_project import ROOT, project, tracked_files
from tools.generate.stubs import stubs

EXPLAIN = """
import opendml as dml
graph = dml.Graph()
x = graph.input("x", dml.FLOAT32, [4])
print(dml.__file__)
print(len(graph.compile({"y": dml.activation_relu(x)}, device="reference").explain().html()) > 1000)
"""

BY_NAME = """
import sys, torch
function = torch.compile(lambda x: (x + 1).relu(), backend="opendml")
result = function(torch.tensor([1.0, -2.0])).tolist()
print(sys.modules["opendml.torch"].__file__)
print(result)
"""


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(target: str, *options: str | Path, folder: Path) -> None:
    backend = Path(pytest.importorskip("hatchling").__file__).parents[1]
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, *options]
    run(*command, folder=folder, PYTHONPATH=str(backend))


@pytest.fixture(scope="module")
def sdist(made_once: MadeOnce) -> Path:
    """The unpacked source distribution, with the wheel that is built of it in `dist`."""

    def make(folder: Path) -> None:
        build("sdist", "--directory", folder, folder=ROOT)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        build("wheel", folder=folder / archive.name.removesuffix(".tar.gz"))

    (unpacked,) = made_once("sdist", make).glob("*/")
    return unpacked


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """The wheel, built of the source distribution."""
    (built,) = (sdist / "dist").glob("*.whl")
    return built


def test_the_sdist_has_all_that_is_tracked_but_what_serves_the_repository(sdist: Path) -> None:
    left_out = {".ci", ".github", ".gitignore"}
    for path in tracked_files():
        name = path.relative_to(ROOT)
        assert name.parts[0] in left_out or (sdist / name).is_file(), name


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
        licenses = [name for name in packed.namelist() if name.endswith("/licenses/LICENSE")]
    source = ROOT / "src"
    tracked = {path.relative_to(source).as_posix() for path in tracked_files() if path.is_relative_to(source)}
    assert names == tracked | {f"opendml/{name}" for name in stubs()}
    assert len(licenses) == 1


def test_the_metadata_of_the_wheel_is_that_of_the_project(wheel: Path) -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(packed.read(name))
    assert (metadata["Name"], metadata["Version"]) == ("opendml", project()["version"])
    classifiers = metadata.get_all("Classifier") or []
    assert set(classifiers) <= set(known)
    assert [each for each in classifiers if each.startswith("Operating System")] == [
        "Operating System :: POSIX :: Linux"
    ]
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.fixture(scope="module")
def installed(wheel: Path, made_once: MadeOnce) -> Path:
    """An environment with the wheel, and with what it depends on of this environment."""

    def make(clean: Path) -> None:
        venv.create(clean, with_pip=False)
        install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel]
        run(sys.executable, "-m", "pip", "--python", clean / "bin" / "python", *install, folder=clean)
        # As a plain entry of the path this environment brings no other opendml.
        (packages_of(clean) / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n", "utf-8")

    return made_once("installed", make)


def packages_of(environment: Path) -> Path:
    (packages,) = environment.glob("lib/*/site-packages")
    return packages


def test_the_wheel_works_in_an_environment_of_its_own(installed: Path, tmp_path: Path) -> None:
    where, has_page = run(installed / "bin" / "python", "-c", EXPLAIN, folder=tmp_path).split()
    assert Path(where).is_relative_to(packages_of(installed))
    assert has_page == "True"
    command = installed / "bin" / "opendml"
    assert run(command, "--version", folder=tmp_path).split()[-1] == project()["version"]
    model = ROOT / "examples" / "celu.json"
    assert "Resource 'y'" in run(command, "run", model, "--device", "reference", folder=tmp_path)


def test_pytorch_finds_the_backend_of_the_wheel_by_its_name(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    where, result = run(installed / "bin" / "python", "-c", BY_NAME, folder=tmp_path).splitlines()
    assert Path(where).is_relative_to(packages_of(installed))
    assert result == "[2.0, 0.0]"
