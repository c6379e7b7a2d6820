"""FirstUsed: a topic's contract, made when the first batch comes.

Logs are opened, with the settings of their topics, before there are services; and most nodes never need a contract, nor
what is imported for one (`server/schemas/contracts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ottla.log.config import Findings, Inspect
from ottla.records.batch import BatchHeader


class FirstUsed:
    def __init__(self, make: Callable[[], Inspect]) -> None:
        self._make = make
        self._made: Inspect | None = None

    def begin(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made.begin(name)

    def look(self, data: bytes, header: BatchHeader, name: str, begun: Any) -> Generator[None, None, Findings | None]:
        assert self._made is not None, "begin() comes first"
        return self._made.look(data, header, name, begun)
