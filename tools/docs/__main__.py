"""`python -m tools.docs`: builds the documentation into build/docs/html. Every warning is an error."""

from __future__ import annotations

import gc
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.docs.pages import generated_pages, generated_parts

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
_EXTERNAL = re.compile(r"https?://[^\s)>\]\"'`]+")
_GENERATED = re.compile(r"<!-- generated: (\w+) -->")


def main(arguments: list[str]) -> int:
    """Build into the folder named by the first argument, else into build/docs."""
    # Tests import this module to list links, and build in another process.
    from sphinx.cmd.build import build_main

    target = Path(arguments[0]) if arguments else ROOT / "build" / "docs"
    source = target / "source"
    shutil.rmtree(target, ignore_errors=True)
    write_sources(source)
    links = external_links(source.rglob("*.md"))
    (target / "external_links.txt").write_text("".join(f"{link}\n" for link in links), "utf-8")
    gc.disable()  # Sphinx keeps most nodes that it makes. To look for garbage takes a third of the time.
    options = ["-q", "-W", "--keep-going", "-d", str(target / "doctrees")]
    return int(build_main([*options, "-b", "html", str(source), str(target / "html")]))


def write_sources(folder: Path) -> None:
    """Write the sources for Sphinx: the written and generated pages, and results of benchmarks."""
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("__pycache__", "conftest.py"))
    parts = generated_parts()
    for file in folder.rglob("*.md"):
        filled = _GENERATED.sub(lambda mark: parts[mark[1]], file.read_text("utf-8"))
        file.write_text(filled, "utf-8")
    for path, text in generated_pages().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    for name in ("SECURITY.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text("utf-8")
        (folder / name.lower()).write_text(text.replace("](docs/", "]("), "utf-8")
    ignored = shutil.ignore_patterns("*.json")
    shutil.copytree(RESULTS, folder / "benchmarks", ignore=ignored, dirs_exist_ok=True)


def external_links(files: Iterable[Path]) -> list[str]:
    """Return the addresses outside the documentation, which the build does not fetch."""
    return sorted({link for file in files for link in _EXTERNAL.findall(file.read_text("utf-8"))})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
