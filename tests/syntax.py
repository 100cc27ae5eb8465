"""The package as syntax trees, for the tests that read its sources."""

from __future__ import annotations

import ast
import gc
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import opendml
from opendml.garbage import collection_paused

PACKAGE = Path(opendml.__file__).parent


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Return the modules of the package, which are parsed once and kept.

    Looking for garbage among their nodes takes twice as long as parsing, so it is left out, then and later.
    """
    with collection_paused():
        found = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
        gc.freeze()
    return found
