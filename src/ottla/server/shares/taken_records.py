"""The records that a ShareFetch takes from share partitions."""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.files.disk import FileSlice
from ottla.model.errors import ApiError
from ottla.server.fetch.share_sessions import Named
from ottla.shares.partition.terms import AcquiredRange


class Taken(NamedTuple):
    """The records of one partition for a member. Batches may contain records that were not acquired; consumers skip
    them.
    """

    acquired: list[AcquiredRange]
    records: FileSlice | bytes


NOTHING = Taken([], b"")


class ShareFound(NamedTuple):
    """The contents of an answer."""

    taken: dict[Named, Taken]
    errors: dict[Named, ApiError]
    readable: list[Named]  # partitions from which records could be, or were, acquired
