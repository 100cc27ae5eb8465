"""`python -m tools.generate` writes the stubs of the modules that are made from the operators' facts.

`make lint` and the build hook run it. It needs nothing but Python.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def main() -> int:
    """Write the stubs that differ from the facts, or print what is wrong with the facts and return 1."""
    if "opendml" not in sys.modules:
        # The package without its __init__, which imports NumPy and others that an isolated build lacks.
        package = ModuleType("opendml")
        package.__path__ = [str(Path(__file__).parents[2] / "src" / "opendml")]
        sys.modules["opendml"] = package
    from tools.generate.schema import problems_of_files
    from tools.generate.stubs import write_stubs

    if problems := problems_of_files():
        print("\n".join(problems))
        return 1
    for path in write_stubs():
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
