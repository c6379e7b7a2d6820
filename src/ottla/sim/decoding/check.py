"""Claims about schemas and decoded records, whatever fails on the way.

Claims:
1. one schema per id: every registration and every lookup, at every instance, gives the same schema for an id, for ever;
2. none forgotten: an instance that knew an id knows it until it ends (while it reads its topic again, it still serves
   the old state), and in the end every id that a registration returned is there;
3. none skipped: every record below a committed offset was decoded. A record that could not be decoded is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.model.ids import TopicPartition

GROUP = "decoders"


class DecodingBook:
    """The observations of a run; see the module. A life is one process of an instance."""

    group = GROUP

    def __init__(self, blame: Callable[[str], None]) -> None:
        self._blame = blame
        self.fields: dict[int, str] = {}  # id → the field of its schema, which is unique to it
        self.answered: dict[int, None] = {}  # the ids that registrations returned
        self._known: dict[str, set[int]] = {}  # instance life → the ids it knew
        self._decoded: dict[TopicPartition, set[int]] = {}
        self.written: dict[tuple[TopicPartition, int], None] = {}  # acknowledged records
        self.lookups = 0
        self.decoded = 0

    # -- what registries say

    def registered(self, schema_id: int, field: str) -> None:
        self.answered[schema_id] = None
        self._is(schema_id, field, "was registered")

    def looked_up(self, life: str, schema_id: int, field: str | None) -> None:
        """Note a lookup; `field` None: the instance knows no such id. It may not have read it yet."""
        self.lookups += 1
        known = self._known.setdefault(life, set())
        if field is not None:
            known.add(schema_id)
            self._is(schema_id, field, f"is, as {life} says,")
        elif schema_id in known:
            self._blame(f"schema {schema_id}: {life} knew it, and has forgotten it")

    def _is(self, schema_id: int, field: str, how: str) -> None:
        before = self.fields.setdefault(schema_id, field)
        if before != field:
            self._blame(f"schema {schema_id} is the one with {before}, and {how} the one with {field}")

    # -- what consumers say

    def was_decoded(self, partition: TopicPartition, offset: int, schema_id: int, written: str, read: str) -> None:
        self.decoded += 1
        self._decoded.setdefault(partition, set()).add(offset)
        if written != read:
            self._blame(
                f"{partition}, offset {offset}: written with {written}, decoded with {read} (schema {schema_id})"
            )

    def floors(self) -> dict[TopicPartition, int]:
        """Return no floors: these consumers commit automatically, so no commit is certain."""
        return {}

    def found(self, offsets: Mapping[TopicPartition, int], floors: Mapping[TopicPartition, int]) -> None:
        """Check the committed offsets."""
        for partition, committed in offsets.items():
            decoded = self._decoded.get(partition, set())
            skipped = [offset for offset in range(committed) if offset not in decoded]
            if skipped:
                self._blame(f"{partition}: {committed} is committed, but nobody decoded {skipped[:5]}")

    @property
    def all_decoded(self) -> bool:
        return all(offset in self._decoded.get(partition, ()) for partition, offset in self.written)
