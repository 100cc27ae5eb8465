"""What imports what: no circles, and a runtime that knows no target."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests import syntax

RUNTIME = "opendml.runtime"


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the package by name."""
    found = {}
    for path, tree in syntax.trees().items():
        *folders, last = path.relative_to(syntax.PACKAGE.parent).with_suffix("").parts
        found[".".join(folders if last == "__init__" else [*folders, last])] = tree
    return found


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that are executed, in functions too, but not those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from statements(child)


def called(call: ast.Call) -> str:
    """Return the last name of what is called. `ast.unparse` would take a second for all calls."""
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, by `import_module` too."""
    calls = [node for node in ast.walk(trees()[module]) if isinstance(node, ast.Call)]
    dynamic = [call.args[0] for call in calls if "import_module" in called(call)]
    found = {str(name.value) for name in dynamic if isinstance(name, ast.Constant)}
    for statement in statements(trees()[module]):
        assert isinstance(statement, ast.Import) or statement.level == 0
        for alias in statement.names:
            source = statement.module if isinstance(statement, ast.ImportFrom) else alias.name
            inner = f"{source}.{alias.name}"
            found.add(inner if inner in trees() else str(source))
    return frozenset((found & trees().keys()) - {module})


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module."""
    found, below = list[list[str]](), dict[str, set[str]]()
    for start in graph:
        reached, waiting = set[str](), [start]
        while waiting:
            new = graph[waiting.pop()] - reached
            reached |= new
            waiting += new
        below[start] = reached
    left = set(graph)
    while left:
        first = min(left)
        circle = {first} | {each for each in below[first] if first in below[each]}
        left -= circle
        if len(circle) > 1:
            found.append(sorted(circle))
    return found


def test_imports_have_no_circle() -> None:
    found = circles({name: imported(name) for name in trees()})
    assert not found, "\n".join(map(", ".join, found))


def test_circles_are_found() -> None:
    graph = {"a": "b", "b": "cd", "c": "b", "d": "", "e": "af", "f": "e"}
    assert circles({name: frozenset(read) for name, read in graph.items()}) == [["b", "c"], ["e", "f"]]


ROOMS = (
    (
        *("across_forks", "budget", "context", "control_groups", "digests", "errors", "floating_point"),
        *("folders", "garbage", "host_memory", "json_files", "late_dataclass", "later", "locked", "logs"),
        *("model_files", "signals", "spelling"),
    ),
    ("spec",),
    ("program",),
    ("operators",),
    ("compiler",),
    ("targets",),
    ("outputs",),
    ("runtime",),
    ("functions",),
    ("frontends",),
    ("catalog", "cli", "__init__", "__main__", "directml", "onnx", "pydirectml", "serialized", "torch"),
)
"""Modules and packages of opendml, from low to high. A module imports others of its row, and lower ones."""


def row(module: str) -> int:
    """Return the number of the row that a module belongs to."""
    _, name, *_ = *module.split("."), "__init__"
    return next(number for number, names in enumerate(ROOMS) if name in names)


UNGUARDED = (
    "opendml.cli",
    "opendml.frontends.dxdispatch",
    "opendml.targets.cuda",
    "opendml.targets.cpu.object_code",
)
"""Programs, which import before they start threads, CUDA, which children of forks cannot use, and the program
of workers. Before this process uses the latter, `llvm_library.load` imports LLVM."""


def late_imports(node: ast.AST, is_late: bool = False) -> Iterator[int]:
    """Yield the lines of imports in functions that do not hold `importing`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.With) and "importing" in map(ast.unparse, child.items):
            continue
        if is_late and isinstance(child, ast.Import | ast.ImportFrom):
            yield child.lineno
        yield from late_imports(child, is_late or isinstance(child, ast.FunctionDef))


def test_a_fork_waits_for_late_imports() -> None:
    """The child would wait for ever for a module that another thread was importing."""
    found = {name: [*late_imports(tree)] for name, tree in trees().items() if not name.startswith(UNGUARDED)}
    # The caller of this function holds the lock.
    assert len(found.pop("opendml")) == 1
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_no_room_imports_from_a_higher_one() -> None:
    upwards = {
        name: higher
        for name in trees()
        if (higher := sorted(each for each in imported(name) if row(each) > row(name)))
    }
    assert upwards == {}


def frozen_at_import(tree: ast.Module) -> list[str]:
    """Return the frozen dataclasses of a module whose methods `dataclasses` makes."""
    imported_names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        for alias in node.names
        if alias.name == "dataclass"
    }
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for each in node.decorator_list
        if isinstance(each, ast.Call) and ast.unparse(each.func) in {*imported_names, "dataclasses.dataclass"}
        if any(keyword.arg == "frozen" for keyword in each.keywords)
    ]


def test_no_import_makes_methods_of_frozen_dataclasses() -> None:
    """`opendml.late_dataclass` has a decorator that makes them when they are needed."""
    assert {name: found for name, tree in trees().items() if (found := frozen_at_import(tree))} == {}


def test_frozen_dataclasses_are_found() -> None:
    usual = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A: pass"
    assert frozen_at_import(ast.parse(usual)) == ["A"]
    assert frozen_at_import(ast.parse(usual.replace("from dataclasses", "from opendml.late_dataclass"))) == []


def test_a_module_whose_package_is_absent_is_no_attribute() -> None:
    """`hasattr`, `help` and `inspect.getmembers` expect that of an attribute that cannot be had."""
    code = """
import contextlib, inspect, io, sys
for name in ("onnx", "torch"):
    sys.modules[name] = None
import opendml as dml
assert not hasattr(dml, "torch") and not hasattr(dml, "onnx")
assert dict(inspect.getmembers(dml))["Device"] is dml.Device
with contextlib.redirect_stdout(io.StringIO()) as page:
    help(dml)
assert "activation_celu" in page.getvalue()
for statement in ("import opendml.torch", "from opendml import onnx"):
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError(statement)
try:
    dml.torch
except AttributeError as error:
    assert "pip install 'opendml[torch]'" in str(error)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def modules_of(package: str) -> list[str]:
    """A package and all modules in it."""
    return [name for name in trees() if name == package or name.startswith(f"{package}.")]


TARGETS = ("cpu", "cuda", "reference")


@pytest.mark.parametrize("package", [RUNTIME, "opendml.compiler", "opendml.program", "opendml.operators"])
def test_what_serves_all_targets_imports_none(package: str) -> None:
    forbidden = {name for target in TARGETS for name in modules_of(f"opendml.targets.{target}")}
    assert {name: found for name in modules_of(package) if (found := imported(name) & forbidden)} == {}


def words(tree: ast.Module) -> Iterator[str]:
    """The identifiers of a module, and its strings but for docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
            yield node.name
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_text(node.value)
    }
    yield from (
        str(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and _is_text(node) and id(node) not in docstrings
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_the_runtime_names_no_target_but_the_default_kind() -> None:
    named = {
        (name, word)
        for name in modules_of(RUNTIME)
        for word in words(trees()[name])
        if any(target in word.lower() for target in ("cuda", "llvm")) or word in TARGETS
    }
    assert named == {("opendml.runtime.objects.device", "cpu")}


FOREIGN = (
    "__dlpack__",
    "dtype",
    "is_neg",
    "requires_grad",
    "shape",
    "from_dlpack",
    "numpy",
    "geteuid",
    "register_at_fork",
    "sysconf",
)
"""Attributes of arrays of other libraries, of these libraries and of the system, which may lack them."""


def test_what_serves_all_targets_asks_none_whether_it_has_an_attribute() -> None:
    """Only what is not opendml's is asked, and names that are fields' or types'."""
    asked = {
        (name, node.args[1].value)
        for name in [*modules_of(RUNTIME), *(each for each in trees() if each.count(".") == 2)]
        if name.startswith((RUNTIME, "opendml.targets"))
        for node in ast.walk(trees()[name])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ("hasattr", "getattr") and isinstance(node.args[1], ast.Constant)
    }
    assert {(name, word) for name, word in asked if word not in FOREIGN} == {
        ("opendml.runtime.calls.arguments", "function"),
        ("opendml.runtime.objects.intermediates", "is_showing"),
    }
