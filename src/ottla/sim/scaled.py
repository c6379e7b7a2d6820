"""Limits that a run makes small, so that behaviour at tens of thousands of items shows after a few."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from struct import Struct
from types import ModuleType

BLOCK_ENTRIES = 2
# Kafka's index of aborted transactions is read in blocks: all constants that depend on the number of transactions per
# block.
FEW_ABORTED: Mapping[str, object] = {
    "ottla.model.limits.ABORTED_BLOCKS_SUMMARIZED_MAX": 1,
    "ottla.log.files.txn_index.BLOCK_ENTRIES": BLOCK_ENTRIES,
    "ottla.log.files.txn_index._FIRST_OFFSETS": Struct(">" + "10xq16x" * BLOCK_ENTRIES),
}


@contextmanager
def scaled(smaller: Mapping[str, object]) -> Iterator[None]:
    """Set constants, given with their modules, for the time of the context, also in modules that imported them by
    name.
    """
    before: list[tuple[ModuleType, str, object]] = []
    for path, value in smaller.items():
        owner, _, name = path.rpartition(".")
        usual = getattr(importlib.import_module(owner), name)
        for module in [each for key, each in sorted(sys.modules.items()) if key.startswith("ottla.")]:
            if vars(module).get(name) is usual:
                before.append((module, name, usual))
                setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, usual in before:
            setattr(module, name, usual)
