"""Names that say of a topic that it has dead letters."""

from __future__ import annotations

_ENDINGS = ("dlq", "dlt", "dead-letter", "dead-letters", "dead_letters", "deadletter", "deadletters")


def is_named_for_letters(topic: str) -> bool:
    return topic.lower().endswith(_ENDINGS)
