"""The terms of a topic's contract, read from its settings, and the subjects that they rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry
from ottla.client.registry import RegistryError, RegistryUnreachable
from ottla.console.access import Access
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.resources import Resource, ResourceType
from ottla.model.topic_settings import (
    OTTLA_SCHEMA_VALIDATION,
    OTTLA_SCHEMA_VALIDATION_ACTION,
    OTTLA_SCHEMA_VALIDATION_DLQ,
    OTTLA_SCHEMA_VALIDATION_OF,
    OTTLA_SCHEMA_VALIDATION_SUBJECT,
)
from ottla.observe.metrics.catalogue.storage import REFUSED
from ottla.operations.sampling.sample import TopSampler, TopView
from ottla.operations.threads import BlockingWork, in_thread

SETTINGS = (
    OTTLA_SCHEMA_VALIDATION,
    OTTLA_SCHEMA_VALIDATION_ACTION,
    OTTLA_SCHEMA_VALIDATION_OF,
    OTTLA_SCHEMA_VALIDATION_SUBJECT,
    OTTLA_SCHEMA_VALIDATION_DLQ,
)
CHECKS = {
    "none": "records are not checked",
    "id": "a record has to name a schema that is registered",
    "full": "a record has to name a registered schema, and to be what that schema says",
}
ACTIONS = {
    "reject": "the producer's batch is refused, with an error",
    "dlq": "the record goes to a dead-letter topic, and the rest of the batch is written",
    "tag": "the record is written with a header that says what is wrong",
}


class TopicContract(NamedTuple):
    """What a topic's settings say of its contract."""

    topic: str
    check: str
    action: str
    of: str
    subject: str
    letters: str

    @property
    def is_on(self) -> bool:
        return self.check != "none"

    @property
    def letters_topic(self) -> str:
        """The dead-letter topic, if records go there."""
        return (self.letters or f"{self.topic}.dlq") if self.action == "dlq" else ""

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects that records have to be registered in; none if any will do."""
        if not self.is_on or self.subject == "any":
            return ()
        parts = ("key", "value") if self.of == "both" else (self.of,)
        return tuple(f"{self.topic}-{part}" for part in parts)

    def values(self) -> dict[str, str]:
        """The settings by their names."""
        given = (self.check, self.action, self.of, self.subject, self.letters)
        return dict(zip((each.name for each in SETTINGS), given, strict=True))


def terms_of(topic: str, values: Mapping[str, str | None]) -> TopicContract:
    """The terms that these settings are; what is missing has its default."""
    return TopicContract(topic, *(values.get(each.name) or str(each.default or "") for each in SETTINGS))


async def read_terms(admin: Admin, topics: Sequence[str]) -> tuple[list[TopicContract], int]:
    """The terms of the topics, and how many of them the visitor may not see."""
    found: list[TopicContract] = []
    hidden = 0
    for first in range(0, len(topics), limits.CONTRACT_TOPICS_AT_ONCE):
        some = topics[first : first + limits.CONTRACT_TOPICS_AT_ONCE]
        resources = [Resource(ResourceType.TOPIC, each) for each in some]
        outcomes = await admin.configs.describe_each(resources, [each.name for each in SETTINGS])
        hidden += sum(isinstance(error, ApiError) for error in outcomes.failed.values())
        found += [terms_of(resource.name, _values(entries)) for resource, entries in outcomes.answered().items()]
    return found, hidden


async def read_one(admin: Admin, topic: str) -> TopicContract:
    """The terms of one topic. Raises ApiError."""
    resource = Resource(ResourceType.TOPIC, topic)
    return terms_of(topic, _values(await admin.configs.describe(resource, [each.name for each in SETTINGS])))


async def known_subjects(access: Access) -> frozenset[str] | None:
    """The subjects of the registry; None if there is no registry, or it does not tell."""
    if access.registry is None:
        return None
    try:
        return frozenset(await in_thread(BlockingWork.registry, access.registry.subjects))
    except (RegistryError, RegistryUnreachable):
        return None


async def refusals_of(access: Access) -> dict[str, float] | None:
    """Refused batches by topic, since the nodes started; None if no node tells its metrics here."""
    security = access.client_options.known_security
    sample = await access.aside(lambda admin: TopSampler(admin, security).take(TopView.REQUESTS))
    if not sample.metrics:
        return None
    found: dict[str, float] = {}
    for samples in sample.metrics.values():
        for topic, count in samples.by(REFUSED.name, "topic").items():
            found[topic] = found.get(topic, 0) + count
    return found


def _values(entries: Iterable[ConfigEntry]) -> dict[str, str | None]:
    return {each.name: each.value for each in entries}
