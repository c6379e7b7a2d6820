"""`python -m tests.torture`: torture a node for a while. A run that fails says why and keeps its directory."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.torture.run import Torture


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (default %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="what is done to the node, and when")
    options = parser.parse_args()
    seed = random.randrange(10**9) if options.seed is None else options.seed
    directory = Path(tempfile.mkdtemp(prefix="ottla-torture-"))
    print(f"seed {seed}, {directory}", flush=True)
    facts = Torture(directory, seed, tell=lambda line: print(line, flush=True)).run(options.seconds)
    print(facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
