"""`python -m tools.generate` writes the generated files; with --check it only compares them."""

from __future__ import annotations

import sys

from tools.generate.files import stale_files, write_files
from tools.generate.schema import problems_of_files


def main(arguments: list[str]) -> int:
    """Writes the files that differ, or with --check lists them; the exit code is 1 when it finds some.

    Where the facts hold a key that is not known, or miss one, it says so, writes nothing and ends with 1.
    """
    problems = problems_of_files()
    if problems:
        print("\n".join(problems))
        return 1
    if arguments == ["--check"]:
        stale = stale_files()
        for path in stale:
            print(f"{path} differs from opendml/spec/data; run python -m tools.generate")
        return 1 if stale else 0
    if arguments:
        print("usage: python -m tools.generate [--check]")
        return 2
    for path in write_files():
        print(f"wrote {path}" if path.exists() else f"removed {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
