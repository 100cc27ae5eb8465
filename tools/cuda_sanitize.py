"""Runs the small cases of `cuda_check` under compute-sanitizer: accesses outside of memory, races in shared
memory, reads of what nobody wrote, and barriers that threads miss.

python -m tools.cuda_sanitize [WORD ...]    only cases whose name has all the words

compute-sanitizer comes with the CUDA toolkit, or with `pip install nvidia-cuda-sanitizer-api`. Exit status:
1 if it found something, 2 if it is not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MOST_ELEMENTS = 175_000
"""Checked code is a hundred times slower. Every mode of kernels has cases of this size."""
_FOUND = 9


def sanitizer() -> str | None:
    """The path of compute-sanitizer: on the path, in the toolkit, or in its Python package."""
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
    package = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path=os.pathsep.join(map(str, (toolkit, package)))
    )


def main() -> int:
    """Runs all tools, one after the other."""
    program = sanitizer()
    if program is None:
        print("compute-sanitizer: not found; `pip install nvidia-cuda-sanitizer-api` installs it")
        return 2
    check = [sys.executable, "-m", "tools.cuda_check", "--most-elements", str(MOST_ELEMENTS), *sys.argv[1:]]
    failed = []
    for tool in TOOLS:
        options = ["--tool", tool, "--error-exitcode", str(_FOUND), "--print-limit", "5"]
        status = subprocess.run([program, *options, *check]).returncode
        print(f"{tool}: {'clean' if status == 0 else f'exit status {status}'}", flush=True)
        if status:
            failed.append(tool)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
