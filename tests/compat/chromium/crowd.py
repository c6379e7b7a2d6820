"""A cluster full of topics, groups and hostile contents."""

from __future__ import annotations

import asyncio
import json

from ottla import Admin, Producer
from ottla.client.admin.topics import NewTopic
from ottla.model.ids import TopicPartition

TOPICS = 10_000
GROUPS = 5_000
_TOPICS_AT_ONCE = 1_000
_GROUPS_AT_ONCE = 100

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror="alert(1)">'
LINK = "javascript:alert(1)"
TURNED = "abc\u202egnp.exe"
HOSTILE = (
    SCRIPT,
    IMAGE,
    LINK,
    TURNED,
    "\x00\x1b[31m",
    "'; DROP TABLE x; --",
    "{{7*7}}",
    "&lt;b&gt;",
    "\ud83d\ude00" * 50,
)
HOSTILE_GROUPS = (SCRIPT, IMAGE, "../../etc", "a/b/c", ".", "..", "a b?c#d%2f", TURNED, "~")
RECORDS = "hostile"
SUBJECT = f"{RECORDS}-value"


async def fill(bootstrap: str) -> None:
    """Make all of it."""
    async with Admin(bootstrap) as admin:
        await admin.topics.create(RECORDS, partitions=3)
        await _records(bootstrap)
        names = [f"orders.{number:05}" for number in range(TOPICS)]
        for at in range(0, TOPICS, _TOPICS_AT_ONCE):
            new = [NewTopic(name, partitions=1) for name in names[at : at + _TOPICS_AT_ONCE]]
            (await admin.topics.create_each(new)).all()
        groups = [*HOSTILE_GROUPS, *(f"billing-{number:05}" for number in range(GROUPS))]
        for at in range(0, len(groups), _GROUPS_AT_ONCE):
            places = {TopicPartition(RECORDS, 0): 1}
            await asyncio.gather(
                *(admin.groups.set_offsets(name, places) for name in groups[at : at + _GROUPS_AT_ONCE])
            )


async def _records(bootstrap: str) -> None:
    async with Producer(bootstrap) as producer:
        for text in HOSTILE:
            raw = text.encode("utf-8", "surrogatepass")
            value = json.dumps({text: text, "price": 7}).encode()
            headers = [("trace", raw), (text.encode("utf-8", "replace").decode(), b"x")]
            await producer.send(RECORDS, value, key=raw, headers=headers)
            await producer.send(RECORDS, raw * 20, key=None)
        await producer.send(RECORDS, SCRIPT.encode() * 20_000, key=b"large")
        await producer.send(RECORDS, None, key=b"tombstone")
        await producer.send(RECORDS, bytes(range(256)), key=bytes(range(255, -1, -1)))
