"""The repository: what its pages say is true, and its files and declarations agree."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import opendml
from tests.syntax import trees

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
    from opendml.spec import enums
    from opendml.spec.naming import camel_case
    from opendml.spec.schema import operators

    taken = {camel_case(f.enum) for operator in operators().values() for f in operator.fields if f.enum}
    assert taken
    for name in taken:
        assert getattr(opendml, name) is getattr(enums, name)
        assert name in opendml.__all__


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


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text("utf-8"))
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
    used = {name for tree in trees().values() for name in _imports(tree)}
    outside = used - set(sys.stdlib_module_names) - {"opendml"}
    assert "numpy" in outside
    assert {DISTRIBUTIONS.get(name, name) for name in outside} <= declared


def test_every_required_dependency_is_imported() -> None:
    used = {name for tree in trees().values() for name in _imports(tree)}
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


def _imports(tree: ast.Module) -> set[str]:
    """The first part of the name of every module that a module imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_each_promise_has_tests_that_are_there() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    promises = text.split("## What is promised")[1].split("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 8
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"
