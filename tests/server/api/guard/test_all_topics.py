"""What a client may see of lists that it did not name: decided in slices, and without a word in the audit log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.admin import Admin
from tests.server.storages import facades_of

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.access_rules import AccessRules
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.audit_event import AuditKind
from ottla.security.principal import Principal
from ottla.server.api import dispatch
from ottla.server.api.context import Context, Peer
from ottla.server.api.guard.guarded import guarded
from ottla.server.loop.later import Sliced
from ottla.server.loop.slices import Slices
from ottla.server.security.audit.authorizer import AuditedAuthorizer
from ottla.server.security.audit.log import AuditLog
from ottla.wire.journal.cluster_metadata import AccessControlEntryRecord
from ottla.wire.messages.groups.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.messages.security.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.shares.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from ottla.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest

ALICE = Principal.user("alice")
HERE = ("127.0.0.1", 1)
COUNT = 3 * limits.DECISIONS_PER_SLICE
SEEN = "t7"


def rules() -> AccessRules:
    """Alice may read every group, and describe one topic of all, and one token."""
    made = AccessRules()
    made.add(entry(0, AclResourceType.GROUP, "*", AclOperation.READ))
    made.add(entry(1, AclResourceType.TOPIC, SEEN, AclOperation.DESCRIBE))
    made.add(entry(2, AclResourceType.DELEGATION_TOKEN, SEEN, AclOperation.DESCRIBE))
    return made


def entry(number: int, kind: AclResourceType, name: str, operation: AclOperation) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=number.to_bytes(16),
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=str(ALICE),
        host="*",
        operation=operation,
        permission_type=AclPermission.ALLOW,
    )


def asked(request: Any, response: Any, version: int) -> tuple[bool, Any, list[dict[str, str]]]:
    """Whether the answer was made in slices, the answer to alice, and what the audit log says."""
    audit = AuditLog([AuditKind.ALL], lambda: 0)

    async def ask() -> tuple[bool, Any]:
        found = rules()
        authorization = SimpleNamespace(authorizer=AuditedAuthorizer(found, audit), silent=found)
        runtime: Any = SimpleNamespace(slices=Slices(asyncio.get_running_loop()))
        context = Context(facades_of(runtime, authorization=authorization), Peer("PLAINTEXT", HERE, HERE))
        context.principal, context.request_version = ALICE, version
        dispatch.load_handler(type(request).key)
        endpoint = dispatch.ENDPOINTS[type(request).key]
        answer: Any = guarded(lambda *_: response, endpoint.request, endpoint.needs, None)(request, context)
        is_sliced = isinstance(answer, Sliced)
        if isinstance(answer, Sliced):
            answer = (await answer.making).response
        return is_sliced, answer

    is_sliced, answer = asyncio.run(ask())
    return is_sliced, answer, [json.loads(line) for line in audit.take()]


def test_all_partitions_page_by_page() -> None:
    """Nothing tells of a topic that the client does not see: neither the page, nor where the next one begins, nor the
    audit log; and nothing about all topics is remembered.
    """
    audit = AuditLog([AuditKind.ALL], lambda: 0)
    admin = Admin(properties={"num.partitions": "1"})
    for name in (SEEN, "t8", "u", "v"):
        admin.create(name, 1)
    found = rules()
    found.add(entry(9, AclResourceType.TOPIC, "v", AclOperation.DESCRIBE))
    authorization = SimpleNamespace(authorizer=AuditedAuthorizer(found, audit), silent=found)
    security: Any = SimpleNamespace(authorization=authorization)
    context = Context(replace(admin.facades, security=security), Peer("PLAINTEXT", HERE, HERE))
    context.principal = ALICE
    endpoint = dispatch.ENDPOINTS[DescribeTopicPartitionsRequest.key]
    ask = guarded(endpoint.handler, endpoint.request, endpoint.needs, None)
    first: Any = ask(DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1, cursor=None), context)
    assert [each.name for each in first.topics] == [SEEN]
    assert first.next_cursor.topic_name == "v"
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="t8", partition_index=0)
    rest: Any = ask(DescribeTopicPartitionsRequest(topics=[], response_partition_limit=9, cursor=cursor), context)
    assert ([each.name for each in rest.topics], rest.next_cursor) == (["v"], None)
    assert not about_topics([json.loads(line) for line in audit.take()])


def about_topics(events: list[dict[str, str]]) -> list[dict[str, str]]:
    return [each for each in events if each["resource_type"] in ("TOPIC", "DELEGATION_TOKEN", "USER")]


def test_all_offsets_of_one_group() -> None:
    topics = [OffsetFetchResponse.Topic(name=f"t{number}", partitions=[]) for number in range(COUNT)]
    request = OffsetFetchRequest(group_id="g", topics=None)
    is_sliced, answer, events = asked(request, OffsetFetchResponse(topics=topics), 7)
    assert is_sliced
    assert [each.name for each in answer.topics] == [SEEN]
    assert [each["resource"] for each in events] == ["g"]


def test_all_offsets_of_many_groups() -> None:
    """The slices count the topics of all groups together."""
    group, each = OffsetFetchResponse.Group, limits.DECISIONS_PER_SLICE // 2
    groups = [
        group(group_id=name, topics=[group.Topics(name=f"t{number}", partitions=[]) for number in range(each)])
        for name in "abc"
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=name, topics=None) for name in "abc"])
    is_sliced, answer, events = asked(request, OffsetFetchResponse(groups=groups), 9)
    assert is_sliced
    assert [[topic.name for topic in found.topics] for found in answer.groups] == [[SEEN]] * 3
    assert not about_topics(events)


def test_all_offsets_of_share_groups() -> None:
    group = DescribeShareGroupOffsetsResponse.Group
    topics = [group.Topic(topic_name=f"t{number}", topic_id=bytes(16), partitions=[]) for number in range(COUNT)]
    response = DescribeShareGroupOffsetsResponse(groups=[group(group_id="g", topics=topics, error_code=0)])
    asking = DescribeShareGroupOffsetsRequest.Group(group_id="g", topics=None)
    is_sliced, answer, events = asked(DescribeShareGroupOffsetsRequest(groups=[asking]), response, 1)
    assert is_sliced
    assert [each.topic_name for each in answer.groups[0].topics] == [SEEN]
    assert not about_topics(events)


def test_all_tokens() -> None:
    kind = DescribeDelegationTokenResponse.DescribedDelegationToken
    times = {"issue_timestamp": 0, "expiry_timestamp": 0, "max_timestamp": 0}
    tokens = [
        kind(principal_type="User", principal_name="bob", token_id=f"t{number}", hmac=b"", renewers=[], **times)
        for number in range(COUNT)
    ]
    response = DescribeDelegationTokenResponse(tokens=tokens, error_code=0)
    is_sliced, answer, events = asked(DescribeDelegationTokenRequest(owners=None), response, 3)
    assert is_sliced
    assert [each.token_id for each in answer.tokens] == [SEEN]
    assert not about_topics(events)


@pytest.mark.parametrize(("topic", "error"), [(SEEN, 0), ("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED)])
def test_a_group_with_a_topic_that_nobody_named(topic: str, error: int) -> None:
    group = ConsumerGroupDescribeResponse.DescribedGroup
    assigned = TopicPartitions(topic_id=bytes(16), topic_name=topic, partitions=[0])
    member = group.Member(
        member_id="m",
        instance_id=None,
        rack_id=None,
        member_epoch=1,
        client_id="",
        client_host="",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        assignment=Assignment(topic_partitions=[assigned]),
        target_assignment=Assignment(topic_partitions=[]),
    )
    described = group(
        error_code=0,
        group_id="g",
        group_state="Stable",
        group_epoch=1,
        assignment_epoch=1,
        assignor_name="uniform",
        members=[member],
    )
    request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    _, answer, events = asked(request, ConsumerGroupDescribeResponse(groups=[described]), 1)
    assert answer.groups[0].error_code == error
    assert not about_topics(events)


def test_a_producer_without_rights_is_once_in_the_audit_log() -> None:
    """IDEMPOTENT_WRITE on the cluster would do as well as WRITE on some topic; the refusal names the last of them."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    _, answer, events = asked(request, None, 4)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert [(each["action"], each["resource_type"], each["resource"], each["outcome"]) for each in events] == [
        ("WRITE", "TOPIC", "*", "refused"),
        ("IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster", "refused"),
    ]
