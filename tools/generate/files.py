"""The generated files, and whether they are what the facts give."""

from __future__ import annotations

from pathlib import Path

import opendml.spec
from tools.generate.enum_source import enum_source

PACKAGE = Path(opendml.spec.__file__).parent.parent


def generated_files(package: Path = PACKAGE) -> dict[Path, str]:
    """Every generated file of the package and its text."""
    # These read the facts through the generated enumerations: not before a first run has written them.
    from tools.generate.desc_source import desc_sources
    from tools.generate.function_source import function_source
    from tools.generate.output_source import output_source

    files = {package / "spec" / "enums.py": enum_source()}
    files |= {package / "spec" / "descs" / name: text for name, text in desc_sources().items()}
    files[package / "functions.py"] = function_source()
    files[package / "outputs.py"] = output_source()
    return files


def stale_files(package: Path = PACKAGE) -> list[Path]:
    """The generated files that are missing or differ from what the facts give, and modules left over."""
    expected = generated_files(package)
    stale = [path for path, text in expected.items() if not path.exists() or path.read_text("utf-8") != text]
    return stale + [
        path for path in sorted((package / "spec" / "descs").glob("*.py")) if path not in expected
    ]


def write_files(package: Path = PACKAGE) -> list[Path]:
    """Writes the files that differ and removes modules left over; returns what it touched."""
    (package / "spec" / "descs").mkdir(parents=True, exist_ok=True)
    (package / "spec" / "enums.py").write_text(enum_source(), "utf-8")
    expected = generated_files(package)
    touched = stale_files(package)
    for path in touched:
        if path in expected:
            path.write_text(expected[path], "utf-8")
        else:
            path.unlink()
    return touched
