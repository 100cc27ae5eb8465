"""The project as a whole: its README, package, promises, imports and platforms."""

from __future__ import annotations

import ast
import email
import importlib.metadata
import multiprocessing
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path, PurePosixPath

import llvmlite.binding as llvm
import numpy as np
import pytest

import opendml
import opendml as dml
from opendml.targets import object_cache
from opendml.targets.cpu import native
from tools.generate.stubs import stubs

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
# What only one machine has: home folders, and the place of this checkout.
LOCAL_PATH = re.compile(rf"/(?:home|Users|root)/\w|{re.escape(str(ROOT))}\b")
# What a distribution is called, where its module has another name.
DISTRIBUTIONS = {"PIL": "pillow", "cuda": "cuda-bindings", "google": "protobuf"}


@cache
def project() -> dict[str, object]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(table, dict)
    return table


def tracked_files() -> list[Path]:
    listing = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        output = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in output.split("\0") if name and (ROOT / name).is_file()]


def readme_blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def test_the_python_blocks_of_the_readme_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = readme_blocks("python")
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    assert blocks
    assert capsys.readouterr().out == "".join(readme_blocks("text"))


def test_the_status_of_the_readme_tells_what_runs() -> None:
    from opendml.operators.registry import implemented
    from opendml.spec.schema import operators

    running = implemented()
    status = README.read_text(encoding="utf-8").split("## Status")[1].split("\n## ")[0]
    assert "All operators up to feature level 6_4" in status
    assert set(operators()) == running


def test_enumerations_of_attributes_are_public_names() -> None:
    import opendml as dml
    from opendml.spec import enums
    from opendml.spec.naming import camel_case
    from opendml.spec.schema import operators

    taken = {camel_case(f.enum) for operator in operators().values() for f in operator.fields if f.enum}
    assert taken
    for name in taken:
        assert getattr(dml, name) is getattr(enums, name)
        assert name in dml.__all__


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_of_a_page_exists(page: str) -> None:
    named = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {*named} - {*targets} == set()


def test_the_readme_is_short_and_shows_a_small_picture() -> None:
    text = README.read_text(encoding="utf-8")
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(text) <= 6000
    assert 0 < (ROOT / picture).stat().st_size <= 200_000


def test_the_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []


def test_the_installed_version_is_that_of_the_project_and_of_the_package() -> None:
    assert importlib.metadata.version("opendml") == project()["version"] == opendml.__version__


def test_every_public_name_exists_and_every_public_function_and_class_has_a_docstring() -> None:
    assert opendml.__all__
    for name in opendml.__all__:
        value = getattr(opendml, name)
        if callable(value) or isinstance(value, type(opendml)):
            assert value.__doc__, name


def test_every_package_that_the_sources_import_is_declared() -> None:
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    requirements = [
        *_strings(project()["dependencies"]),
        *(r for name in extras for r in _strings(extras[name])),
    ]
    declared = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
    used = {name for path in (ROOT / "src").rglob("*.py") for name in _imports(path)}
    outside = used - set(sys.stdlib_module_names) - {"opendml"}
    assert "numpy" in outside
    assert {DISTRIBUTIONS.get(name, name) for name in outside} <= declared


def test_every_required_dependency_is_imported() -> None:
    used = {name for path in (ROOT / "src").rglob("*.py") for name in _imports(path)}
    required = {re.split(r"[^\w-]", requirement)[0] for requirement in _strings(project()["dependencies"])}
    assert required <= used


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {line.strip()}" for line in lines if LOCAL_PATH.search(line)]
    assert found == []


@pytest.mark.parametrize("parts", [("home", "someone"), ("Users", "someone", "x"), ROOT.parts[1:]])
def test_the_search_for_local_paths_finds_one(parts: tuple[str, ...]) -> None:
    assert LOCAL_PATH.search(f"see {'/'.join(('', *parts))}.")


def test_every_installed_package_is_locked_to_one_version() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def _strings(values: object) -> list[str]:
    assert isinstance(values, list)
    return [str(value) for value in values]


def _imports(path: Path) -> set[str]:
    """The first part of the name of every module that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


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
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    build("sdist", "--directory", folder, folder=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """The wheel, built of the source distribution."""
    build("wheel", folder=sdist)
    (built,) = (sdist / "dist").glob("*.whl")
    return built


def test_the_sdist_has_all_that_is_tracked_but_what_serves_the_repository(sdist: Path) -> None:
    left_out = {".ci", ".gitignore"}
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
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with what it depends on of this environment."""
    clean = tmp_path_factory.mktemp("clean")
    venv.create(clean, with_pip=False)
    python = clean / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel]
    run(sys.executable, "-m", "pip", "--python", python, *install, folder=clean)
    # As a plain entry of the path this environment brings no other opendml.
    (packages_of(clean) / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n", "utf-8")
    return clean


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


TEXT = (ROOT / "SECURITY.md").read_text("utf-8")


def test_each_promise_has_tests_that_are_there() -> None:
    promises = TEXT.split("## What is promised")[1].split("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 8
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"


def test_links_lead_to_files_of_the_repository() -> None:
    for link in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / link).is_file(), link


DARWIN = {"__ulock_wait", "__ulock_wake", "clock_gettime_nsec_np", "sched_yield"}
SYSTEMS = {
    ("linux", "x86_64-unknown-linux-gnu"): {"clock_gettime", "sched_yield", "syscall"},
    ("linux", "aarch64-unknown-linux-gnu"): {"clock_gettime", "sched_yield", "syscall"},
    ("darwin", "arm64-apple-darwin"): {
        "__ulock_wait",
        "__ulock_wake",
        "clock_gettime_nsec_np",
        "sched_yield",
    },
    ("darwin", "x86_64-apple-darwin"): {
        "__ulock_wait",
        "__ulock_wake",
        "clock_gettime_nsec_np",
        "sched_yield",
    },
    ("win32", "x86_64-pc-windows-msvc"): {
        "GetTickCount64",
        "SwitchToThread",
        "WaitOnAddress",
        "WakeByAddressAll",
    },
}


@pytest.mark.parametrize(("system", "triple"), SYSTEMS)
def test_the_native_runtime_compiles_and_asks_for_what_the_system_has(
    system: str, triple: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.sys, "platform", system)
    module = llvm.parse_assembly(native.runtime_assembly(triple))
    module.verify()
    declared = {each.name for each in module.functions if each.is_declaration}
    assert {name for name in declared if not name.startswith("llvm.")} == SYSTEMS[system, triple]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    assert llvm.Target.from_triple(triple).create_target_machine().emit_object(module)


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("linux", {}, ".cache/opendml"),
        ("linux", {"XDG_CACHE_HOME": "/there"}, "/there/opendml"),
        ("darwin", {}, "Library/Caches/opendml"),
        ("win32", {}, "AppData/Local/opendml/Cache"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/opendml/Cache"),
    ],
)
def test_code_is_cached_where_the_system_keeps_caches(
    system: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("OPENDML_CACHE_DIRECTORY", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_cache.Path, "home", lambda: tmp_path)
    monkeypatch.setattr(object_cache.sys, "platform", system)
    assert object_cache.cache_directory() == tmp_path / expected


def test_every_file_may_have_its_name_on_windows_and_where_case_does_not_count() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in tracked_files()]
    reserved = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
    for name in names:
        assert len(name) < 160, name
        for part in PurePosixPath(name).parts:
            assert not set(part) & set('<>:"\\|?*'), name
            assert part == part.rstrip(". "), name
            assert part.split(".")[0].lower() not in reserved, name
    assert [name for name, count in Counter(map(str.lower, names)).items() if count > 1] == []


POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
GUARDED = {"fchmod", "geteuid", "register_at_fork", "sched_getaffinity", "sysconf"}
"""What `os` has on some systems, and is asked for first."""
EVERYWHERE = {
    *(
        "O_RDONLY",
        "O_WRONLY",
        "PathLike",
        "W_OK",
        "access",
        "close",
        "cpu_count",
        "devnull",
        "dup",
        "dup2",
        "environ",
    ),
    *(
        "fsdecode",
        "fspath",
        "fstat",
        "listdir",
        "mkdir",
        "open",
        "path",
        "replace",
        "stat",
        "stat_result",
        "strerror",
    ),
    *("makedirs", "supports_dir_fd", "supports_fd", "unlink", "urandom", "utime"),
}


@cache
def trees_platforms() -> list[tuple[Path, ast.Module]]:
    paths = (path for path in (ROOT / "src").rglob("*.py") if path.name != "functions.py")
    return [(path, ast.parse(path.read_text("utf-8"))) for path in paths]


def test_no_module_of_one_family_of_systems_is_imported() -> None:
    for path, tree in trees_platforms():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & POSIX_ONLY, path


def test_what_os_has_on_some_systems_is_asked_for_first() -> None:
    for path, tree in trees_platforms():
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        }
        assert used <= EVERYWHERE | GUARDED, path
        text = path.read_text("utf-8")
        assert all(f'hasattr(os, "{name}")' in text for name in used & GUARDED), path


def test_text_files_say_their_encoding() -> None:
    for path, tree in trees_platforms():
        for node in ast.walk(tree):
            name = (
                node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            )
            if isinstance(node, ast.Call) and name in ("read_text", "write_text"):
                is_positional = len(node.args) > (name == "write_text")
                assert is_positional or "encoding" in {each.arg for each in node.keywords}, (
                    path,
                    node.lineno,
                )


def spawned(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return dml.activation_tanh(values)  # type: ignore[no-any-return]


def test_a_process_that_begins_anew_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows and macOS have no other processes: nothing of this one is there.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    values = np.linspace(-2, 2, 1000, dtype=np.float32)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(spawned, (values,)), spawned(values))
