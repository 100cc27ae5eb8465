"""`make fuzz`, or `python -m tests.fuzz`: all fuzzers for some time; one case again; or the case of a report.

python -m tests.fuzz --minutes 60 python -m tests.fuzz descs --minutes 5 python -m tests.fuzz descs 12345
python -m tests.fuzz "OnDesc(desc=ActivationRelu(...))"
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.fuzz.campaign import Campaign
from tests.fuzz.choices import Choices
from tests.fuzz.fuzzers import FUZZERS, evaluated, made


def main() -> int:
    """Returns 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "what", nargs="?", help=f"a fuzzer ({', '.join(FUZZERS)}) or a case; all fuzzers without it"
    )
    parser.add_argument(
        "number", nargs="?", type=int, help="the one case of the fuzzer to try, here in this process"
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seed", type=int, help="the number of the first case; without it another one every time"
    )
    chosen = parser.parse_args()
    if chosen.what is not None and chosen.what not in FUZZERS:
        evaluated(chosen.what).check()
        return 0
    if chosen.number is not None:
        case = made(chosen.what, Choices(chosen.number))
        print(case, flush=True)
        case.check()
        return 0
    seed = int(time.time()) * 1000 if chosen.seed is None else chosen.seed
    campaign = Campaign(list(FUZZERS) if chosen.what is None else [chosen.what], seed)
    campaign.run(chosen.minutes * 60, chosen.processes)
    print(campaign.report())
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
