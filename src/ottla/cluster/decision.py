"""The result of a command: returned at once, or in steps if it may cover thousands of partitions (see
`machine/stepped.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from ottla.cluster.entry import MetadataEntry
from ottla.machine.kit import Result
from ottla.machine.stepped import Steps, collected
from ottla.model.limits import METADATA_RECORDS_PER_SLICE

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")

Deciding: TypeAlias = Steps[Result[MetadataEntry, ReplyT]]
Decision: TypeAlias = Result[MetadataEntry, ReplyT] | Steps[Result[MetadataEntry, ReplyT]]


def gathered(items: Iterable[T]) -> Steps[list[T]]:
    """Collect the items in steps, each as large as one slice may handle."""
    return collected(items, METADATA_RECORDS_PER_SLICE)
