"""The file of seeds that failed once: one per line, with the failure after a `#`; `make test` runs them all, for ever.

A seed means what `scenario.py` draws from it. A change of how scenarios are drawn gives old seeds a new meaning: they
are still worth running, but the old bugs should have tests of their own by then.
"""

from __future__ import annotations

import pathlib


def kept_seeds(path: pathlib.Path) -> list[int]:
    if not path.exists():
        return []
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [int(line) for line in lines if line]


def keep_seed(path: pathlib.Path, seed: int, why: str) -> None:
    if seed not in kept_seeds(path):
        with path.open("a") as file:
            file.write(f"{seed}  # {why}\n")
