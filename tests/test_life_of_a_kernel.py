"""Checks that the pages on the life of kernels name every function on the way, in order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/design/life_of_a_kernel/[!i]*.md"))
PACKAGE = ROOT / "src" / "opendml"
MOST_LINES, MOST_FILES = 40, 27
RECORDER = """
import json, sys

source, named = json.load(sys.stdin)
named, order, callers = set(named), [], {}

def name_of(code):
    _, found, path = code.co_filename.rpartition("/opendml/")
    return f"{path}: {code.co_qualname}" if found else None

def record(frame, event, argument):
    if event != "call" or (name := name_of(frame.f_code)) not in named or name in callers:
        return
    stack = []
    while frame := frame.f_back:
        # Not the getter of a cached property, but its function is on the way.
        is_on_way = not frame.f_code.co_name.startswith("<") and frame.f_code.co_name != "__get__"
        if is_on_way and (caller := name_of(frame.f_code)) is not None:
            stack.append(caller)
    callers[name] = stack[::-1]
    order.append(name)

import numpy as np
import opendml as dml
from benchmarks.capability import restricted

with restricted("avx2"):
    dml.activation_tanh(np.zeros(8, np.float32))  # imports what is loaded late
    sys.setprofile(record)
    exec(source, globals())
    sys.setprofile(None)
json.dump([order, callers], sys.stdout)
"""


def _named(text: str) -> list[str]:
    """Return the functions in a page's list, each after its file. Files may be relative to targets/cpu."""
    path, result = "", []
    _, _, items = text.partition("\n1. ")
    for name in re.findall(r"`([^`]+)`", items):
        if name.endswith(".py"):
            path = name if (PACKAGE / name).exists() else f"targets/cpu/{name}"
        else:
            result.append(f"{path}: {name}")
    return result


def _recorded(text: str, folder: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Return the functions of a page in the order of their first calls, and their callers in the package."""
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-c", RECORDER],
        input=json.dumps([source, _named(text)]),
        cwd=ROOT,
        env=os.environ | {"OPENDML_CACHE_DIRECTORY": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    order, callers = json.loads(run.stdout)
    return order, callers


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_every_function_on_the_way_of_a_kernel(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    named = _named(text)
    assert len(text.splitlines()) <= MOST_LINES
    assert len({name.partition(":")[0] for name in named}) <= MOST_FILES
    order, callers = _recorded(text, tmp_path)
    assert order == named
    assert {caller for each in callers.values() for caller in each} <= set(named)
