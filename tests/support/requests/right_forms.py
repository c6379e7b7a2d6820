"""The forms of a request that between them need every right that its API declares.

Most APIs have one form, made from the declaration (`one_of_each`); a new API is among them by itself. The others are
here: requests that mean something else with another value, and those that would do harm, or be refused before the
rights matter. All names begin as those of `one_of_each` do, since rights are on these prefixes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.requests.one_of_each import GROUP, TOPIC, TRANSACTION, one_of_each
from tests.support.requests.streamers import internal, subtopology, topology

from ottla.model.ids import NO_ID, ProducerEpoch, ProducerId
from ottla.model.resources import ResourceType
from ottla.records.build import build_batch
from ottla.wire.api import API_NAMES, request_class
from ottla.wire.message import fields
from ottla.wire.messages.topics.metadata import MetadataRequest

CONSUMERS, SHARERS, STREAMERS = f"{GROUP}-consumers", f"{GROUP}-sharers", f"{GROUP}-streamers"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAg"
SHARE_KEY = f"{SHARERS}:AAAAAAAAAAAAAAAAAAAAAQ:0"
ABSENT_PARTITION = 7
ABSENT_BROKER = 77
UNUSED_PRODUCER = ProducerId(10**9)

Form = Callable[[Any, int, str], None]  # changes a request of a version; the text is new for each request


def _as_it_is(request: Any, version: int, new: str) -> None:
    pass


def _set(**values: Any) -> Form:
    """Set fields, in versions that have them."""

    def change(request: Any, version: int, new: str) -> None:
        known = {field.name for field in fields(type(request)) if version in field.versions}
        for name, value in values.items():
            if name in known:
                setattr(request, name, value)

    return change


def _transactional(request: Any, version: int, new: str) -> None:
    batch = build_batch(
        [(b"k", b"v")],
        timestamp=0,
        producer_id=UNUSED_PRODUCER,
        producer_epoch=ProducerEpoch(0),
        base_sequence=0,
        transactional=True,
    )
    request.topic_data[0].partition_data[0].records = bytes(batch)


def _as_follower(request: Any, version: int, new: str) -> None:
    (request if version < 15 else request.replica_state).replica_id = ABSENT_BROKER


def _metadata_of(name: str, *, made_new: bool = False) -> Form:
    def change(request: Any, version: int, new: str) -> None:
        request.topics = [MetadataRequest.Topic(name=name + new if made_new else name)]
        request.allow_auto_topic_creation = made_new

    return change


def _coordinator(kind: int, key: str) -> Form:
    """A request for the coordinator of this kind; version 0 knows only groups."""

    def change(request: Any, version: int, new: str) -> None:
        meant = key if version >= 1 else GROUP
        _set(key_type=kind, key=meant, coordinator_keys=[meant])(request, version, new)

    return change


def _new_topic(request: Any, version: int, new: str) -> None:
    topic = request.topics[0]
    topic.name, topic.assignments, topic.configs = f"{TOPIC}-never", [], []


def _delete_by_name(request: Any, version: int, new: str) -> None:
    if version >= 6:
        request.topics[0].name, request.topics[0].topic_id = TOPIC, NO_ID


def _resource(type: ResourceType, name: str) -> Form:
    def change(request: Any, version: int, new: str) -> None:
        request.resources[0].resource_type, request.resources[0].resource_name = type, name

    return change


def _offset_fetch(request: Any, version: int, new: str) -> None:
    for group in request.groups:
        group.member_id = None


def _all_offsets(request: Any, version: int, new: str) -> None:
    _offset_fetch(request, version, new)
    for group in request.groups if version >= 8 else [request] * (version >= 2):
        group.topics = None


def _share_offsets(request: Any, version: int, new: str) -> None:
    request.groups[0].group_id = SHARERS


def _all_share_offsets(request: Any, version: int, new: str) -> None:
    _share_offsets(request, version, new)
    request.groups[0].topics = None


def _mark_unused(request: Any, version: int, new: str) -> None:
    request.markers[0].producer_id = UNUSED_PRODUCER


def _acl(request: Any, version: int, new: str) -> None:
    entry = request.creations[0]
    entry.principal, entry.host, entry.operation, entry.permission_type = "User:walker", "10.0.0.1", 3, 3


def _share_partition(epoch: int) -> Form:
    def change(request: Any, version: int, new: str) -> None:
        _set(group_id=SHARERS, member_id=MEMBER, share_session_epoch=epoch, forgotten_topics_data=[])(
            request, version, new
        )
        partition = request.topics[0].partitions[0]
        partition.partition_index = ABSENT_PARTITION
        if epoch == 0:
            partition.acknowledgement_batches = []

    return change


def _streams_join(request: Any, version: int, new: str) -> None:
    request.group_id, request.member_id, request.member_epoch = f"{STREAMERS}-{new}", "a", 0
    request.endpoint_information_epoch, request.process_id, request.rack_id = 0, "p", None
    request.active_tasks = request.standby_tasks = request.warmup_tasks = []
    request.user_endpoint = request.task_offsets = request.task_end_offsets = None
    request.client_tags = []
    state = internal(f"{TOPIC}-{new}-changelog")
    request.topology = topology(subtopology("0", TOPIC, state_changelog_topics=[state]))


_CONFIGS = {
    "of a topic": _resource(ResourceType.TOPIC, TOPIC),
    "of a group": _resource(ResourceType.GROUP, GROUP),
    "of a broker": _resource(ResourceType.BROKER, "1"),
    "of a logger": _resource(ResourceType.BROKER_LOGGER, "1"),
    "of client metrics": _resource(ResourceType.CLIENT_METRICS, "metrics"),
}
FORMS: dict[str, dict[str, Form]] = {
    "Produce": {"records": _as_it_is, "transactional records": _transactional},
    "Fetch": {"consumer": _as_it_is, "follower": _as_follower},
    "Metadata": {
        "by id": _as_it_is,
        "by name": _metadata_of(TOPIC),
        "new": _metadata_of(f"{TOPIC}-", made_new=True),
    },
    "OffsetFetch": {"named": _offset_fetch, "all": _all_offsets},
    "FindCoordinator": {
        "of a group": _coordinator(0, GROUP),
        "of a transaction": _coordinator(1, TRANSACTION),
        "of a share": _coordinator(2, SHARE_KEY),
    },
    "ListGroups": {"all": _set(states_filter=[], types_filter=[])},
    "CreateTopics": {"there": _as_it_is, "new": _new_topic},
    "DeleteTopics": {"by id": _as_it_is, "by name": _delete_by_name},
    "InitProducerId": {"transactional": _as_it_is, "idempotent": _set(transactional_id=None)},
    "WriteTxnMarkers": {"": _mark_unused},
    "CreateAcls": {"": _acl},
    "DescribeConfigs": _CONFIGS,
    "AlterConfigs": _CONFIGS,
    "IncrementalAlterConfigs": _CONFIGS,
    "DescribeLogDirs": {"": _set(rates_of_tenant=None)},
    "UnregisterBroker": {"": _set(broker_id=ABSENT_BROKER)},
    "ListTransactions": {
        "all": _set(state_filters=[], producer_id_filters=[], duration_filter=-1, transactional_id_pattern=None)
    },
    "ConsumerGroupDescribe": {"": _set(group_ids=[CONSUMERS])},
    "ShareGroupDescribe": {"": _set(group_ids=[SHARERS])},
    "StreamsGroupDescribe": {"": _set(group_ids=[STREAMERS])},
    "ListConfigResources": {"all": _set(resource_types=[])},
    "ShareFetch": {"": _share_partition(0)},
    "ShareAcknowledge": {"": _share_partition(1)},
    "StreamsGroupHeartbeat": {"": _streams_join},
    "DescribeShareGroupOffsets": {"named": _share_offsets, "all": _all_share_offsets},
    "AlterShareGroupOffsets": {"": _set(group_id=SHARERS)},
    "DeleteShareGroupOffsets": {"": _set(group_id=SHARERS)},
}


def forms_of(key: int) -> dict[str, Form]:
    return FORMS.get(API_NAMES[key], {"": _as_it_is})


def request_of(key: int, version: int, form: Form, topic_id: bytes, new: str) -> Any:
    """A request in this form, which asks for the authorized operations, too, where it can."""
    # These versions of Metadata have a field for the id, but may not use it.
    has_id = not (API_NAMES[key] == "Metadata" and version < 12)
    request = one_of_each(request_class(key), version, topic_id if has_id else NO_ID)
    for field in fields(type(request)):
        if field.name.endswith("authorized_operations") and version in field.versions:
            setattr(request, field.name, True)
    form(request, version, new)
    return request
