"""`python -m opendml.pydirectml SCRIPT.py ARGS` runs a script as `python SCRIPT.py ARGS` does.

The script imports `pydirectml` and `directml` from opendml.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from opendml import directml, pydirectml


def main() -> None:
    """Run the script that the arguments name."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit("usage: python -m opendml.pydirectml SCRIPT.py [ARGS]")
    script = Path(sys.argv[1])
    if not script.is_file():
        sys.exit(f"opendml.pydirectml: no script {script}")
    del sys.argv[0]
    sys.path[0] = str(script.resolve().parent)
    sys.modules["pydirectml"], sys.modules["directml"] = pydirectml, directml
    runpy.run_path(str(script), run_name="__main__")


main()
