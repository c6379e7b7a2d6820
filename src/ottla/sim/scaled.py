"""Limits that a run makes small, so that what takes tens of thousands of something happens after a few."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from struct import Struct
from types import ModuleType

BLOCK_ENTRIES = 2
# Kafka's index of aborted transactions is read in blocks; everything that depends on how many transactions those hold.
FEW_ABORTED: Mapping[str, object] = {
    "ottla.model.limits.ABORTED_BLOCKS_SUMMARIZED_MAX": 1,
    "ottla.log.files.txn_index.BLOCK_ENTRIES": BLOCK_ENTRIES,
    "ottla.log.files.txn_index._FIRST_OFFSETS": Struct(">" + "10xq16x" * BLOCK_ENTRIES),
}


@contextmanager
def scaled(smaller: Mapping[str, object]) -> Iterator[None]:
    """Sets constants, each given with its module, also where they were imported by name, for a while."""
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
