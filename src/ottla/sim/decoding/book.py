"""What must be true of schemas and of what is decoded with them, whatever fails on the way.

Claims:
1. an id is one schema: for whoever registered it, for whoever looks it up, at whichever instance, for ever;
2. none forgotten: an instance that knew an id knows it until it ends (what it reads anew, it reads aside), and in the
   end every id that a registration was answered with is there;
3. none skipped: everything below a committed offset was decoded. What could not be is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.model.ids import TopicPartition

GROUP = "decoders"


class DecodingBook:
    """See the module. A life is one process of an instance."""

    group = GROUP

    def __init__(self, blame: Callable[[str], None]) -> None:
        self._blame = blame
        self.fields: dict[int, str] = {}  # id → the field that its schema has, which no other has
        self.answered: dict[int, None] = {}  # the ids that registrations were answered with
        self._known: dict[str, set[int]] = {}  # by the lives of instances
        self._decoded: dict[TopicPartition, set[int]] = {}
        self.written: dict[tuple[TopicPartition, int], None] = {}  # acknowledged
        self.lookups = 0
        self.decoded = 0

    # -- what registries say

    def registered(self, schema_id: int, field: str) -> None:
        self.answered[schema_id] = None
        self._is(schema_id, field, "was registered")

    def looked_up(self, life: str, schema_id: int, field: str | None) -> None:
        """`field` None: it says that there is no such id. It may not have heard of it yet."""
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
        """Nothing is certain: nobody asks for commits."""
        return {}

    def found(self, offsets: Mapping[TopicPartition, int], floors: Mapping[TopicPartition, int]) -> None:
        """What is committed."""
        for partition, committed in offsets.items():
            decoded = self._decoded.get(partition, set())
            skipped = [offset for offset in range(committed) if offset not in decoded]
            if skipped:
                self._blame(f"{partition}: {committed} is committed, but nobody decoded {skipped[:5]}")

    @property
    def all_decoded(self) -> bool:
        return all(offset in self._decoded.get(partition, ()) for partition, offset in self.written)
