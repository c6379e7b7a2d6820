"""ALONE: the neighbours of a replica in tests without a server, which know no broker and do nothing about changes."""

from __future__ import annotations

from ottla.model.ids import BrokerEpoch
from ottla.replica.neighbours import Neighbours


class _Alone:
    lag_ms_max = 30_000

    def steady_ms(self) -> int:
        return 0

    def broker_epoch(self, _broker_id: int) -> BrokerEpoch | None:
        return None

    def may_join(self, _broker_id: int) -> bool:
        return False

    def moved(self, partition: object) -> None: ...

    def grew(self, partition: object, *, hurry: bool) -> None: ...

    def must_sync(self, partition: object) -> None: ...

    def must_write(self, partition: object) -> None: ...

    def sealed(self, partition: object) -> None: ...

    def isr_may_change(self, partition: object) -> None: ...


ALONE: Neighbours[object] = _Alone()
