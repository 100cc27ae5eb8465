"""`python -m benchmarks`: measures, prints a table, and writes results and a plot.

The limits on threads must stand in the environment before any library starts its own: the libraries are
imported late.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

if TYPE_CHECKING:
    from benchmarks.contender import Peer

RESULTS = Path(__file__).parent / "results"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@click.command(context_settings={"show_default": True})
@click.option(
    "--case", "patterns", multiple=True, help="Only cases whose name contains this; may be repeated."
)
@click.option("--group", "groups", multiple=True, help="Only cases of this group; may be repeated.")
@click.option("--peer", "names", multiple=True, help="Only these libraries, beside opendml; may be repeated.")
@click.option("--rounds", default=15, type=click.IntRange(1), help="Timed runs of each contender.")
@click.option("--threads", default=2, type=click.IntRange(1), help="Threads of every library.")
@click.option("--scale", default=1.0, help="Shrinks the tensors along their first axis, for a quick look.")
@click.option("--compile/--no-compile", "with_compile", default=True, help="PyTorch compiled, slow to start.")
@click.option("--small/--no-small", default=True, help="Calls on 1,000 elements, import and compile times.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, help="Folder of the results.")
@click.option("--list", "list_only", is_flag=True, help="Only list the cases.")
def main(
    patterns: tuple[str, ...],
    groups: tuple[str, ...],
    names: tuple[str, ...],
    rounds: int,
    threads: int,
    scale: float,
    with_compile: bool,
    small: bool,
    output: Path,
    list_only: bool,
) -> None:
    """Measures opendml's operators against the libraries that are installed.

    Every contender computes the same values on the same threads, is checked against float64, and takes
    turns with the others. Speeds are shares of the speed at which this machine copies the same bytes.
    """
    pin_threads(threads)
    from benchmarks.cases import all_cases
    from benchmarks.report import Report, print_case, print_small, write
    from benchmarks.small_work import measure_small_work
    from benchmarks.timing import measure

    cases = [
        case
        for case in all_cases(scale)
        if (not groups or case.group in groups) and (not patterns or any(p in case.name for p in patterns))
    ]
    console = Console()
    if not console.is_terminal:
        console.width = 120
    if list_only:
        for case in cases:
            console.print(f"{case.group:14} {case.name}", highlight=False)
        return
    peers = _installed(names, with_compile, threads)
    report = Report(peers={peer.name: peer.version for peer in peers}, rounds=rounds, threads=threads)
    for case in cases:
        result = measure(case, peers, rounds, threads)
        report.results.append(result)
        print_case(console, result)
    if small:
        report.small = measure_small_work(list(report.peers), rounds, threads)
        print_small(console, report.small)
    for path in write(report, output):
        console.print(f"wrote {path}", highlight=False)


def pin_threads(threads: int) -> None:
    """Limits every library to `threads` threads; on Linux also by the processors that the process may use."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < threads:
            raise click.UsageError(f"--threads {threads}: this process may use {len(allowed)} processors")
        os.sched_setaffinity(0, allowed[:threads])


def _installed(names: tuple[str, ...], with_compile: bool, threads: int) -> list[Peer]:
    """opendml and the chosen peers that can be imported."""
    from benchmarks.peers import PEERS

    unknown = set(names) - PEERS.keys()
    if unknown:
        raise click.UsageError(f"--peer {min(unknown)}: known are {', '.join(PEERS)}")
    found = []
    for name, make in PEERS.items():
        wanted = not names or name in names or name == "opendml"
        if not wanted or (name == "torch.compile" and not with_compile):
            continue
        try:
            found.append(make(threads))
        except ImportError as missing:
            click.echo(f"{name}: left out ({missing})", err=True)
    return found


if __name__ == "__main__":
    main()
