"""Everything about the CUDA target in one call, on a machine with a GPU: all kernels built and compared with
the reference, the tests on the device, compute-sanitizer, and timings beside PyTorch and JAX.

python -m tools.cuda_all [DIRECTORY]    the directory receives the timings (build/cuda if none is given)
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

TESTS = ("tests/cuda", "tests/operators", "tests/runtime", "tests/conformance", "tests/test_cli_run.py")


def steps(directory: Path) -> dict[str, list[str]]:
    """The commands by what they do; each is a module with its arguments."""
    return {
        "compilation of all kernels": ["pytest", "-q", "--all-kernels", "tests/cuda/test_compiles.py"],
        "kernels against the reference": ["tools.cuda_check"],
        "tests on the device": ["pytest", "-q", *TESTS, "-k", "cuda"],
        "compute-sanitizer": ["tools.cuda_sanitize"],
        "timings": ["benchmarks.cuda", "--peers", "--out", str(directory)],
        "timings of contractions": [
            "benchmarks.cuda_contractions",
            "--out",
            str(directory / "products.json"),
        ],
    }


def main() -> int:
    """Runs all steps, whatever becomes of those before; 1 if any fails."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "build/cuda")
    summary = []
    for name, command in steps(directory).items():
        print(f"== {name}", flush=True)
        begun = time.perf_counter()
        status = subprocess.run([sys.executable, "-m", *command]).returncode
        verdict = "ok" if status == 0 else f"exit status {status}"
        summary.append((name, verdict, time.perf_counter() - begun))
    print("== summary")
    for name, verdict, seconds in summary:
        print(f"{name}: {verdict}, {seconds:.0f} s")
    return int(any(verdict != "ok" for _, verdict, _ in summary))


if __name__ == "__main__":
    sys.exit(main())
