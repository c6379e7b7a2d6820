"""`python -m tests.chaos --help`: break a cluster of three real nodes, and judge it."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from tests.chaos.links import KINDS
from tests.chaos.runner import run


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--against", choices=("ottla", "kafka"), default="ottla")
    parser.add_argument("--seconds", type=float, default=120, help="how long it is broken (it takes longer in all)")
    parser.add_argument("--seed", type=int, default=None, help="which faults; by default other ones each time")
    parser.add_argument("--runs", type=int, default=1, help="with seeds that follow each other")
    parser.add_argument("--links", choices=KINDS, default=None, help="what cuts links; namespaces if there can be any")
    parser.add_argument("--only", action="append", default=[], metavar="FAULT", help="as it is called in the output")
    parser.add_argument("--secure", action="store_true", help="no plaintext port, an authorizer, new certificates")
    parser.add_argument("--keep", action="store_true", help="keep the directory with data and logs")
    chosen = parser.parse_args()
    if chosen.secure and chosen.against != "ottla":
        parser.error("--secure breaks a cluster of Ottla")
    return chosen


def main() -> None:
    chosen = arguments()
    console = Console()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the nodes are ended, too
    failed = False
    for number in range(chosen.runs):
        seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed + number
        console.print(f"[bold]{chosen.against}, seed {seed}, {chosen.seconds:g} s")
        directory = Path(tempfile.mkdtemp(prefix="ottla-chaos-"))
        begun = time.monotonic()
        verdict = run(
            chosen.against,
            directory,
            chosen.seconds,
            seed,
            lambda text, begun=begun: console.print(f"{time.monotonic() - begun:7.1f} s  {text}", style="dim"),
            cut_by=chosen.links,
            only=chosen.only,
            secure=chosen.secure,
        )
        for name, count in verdict.facts.items():
            console.print(f"  {name}: {count:,}")
        for problem in verdict.problems:
            console.print(f"  [red]{problem}")
        failed = failed or bool(verdict.problems)
        if chosen.keep or verdict.problems:
            console.print(f"  kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
