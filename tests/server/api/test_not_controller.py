"""What a node that is not the active controller says to requests for it, and what clients hear when none was found."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.admin import Admin

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.authorizer import STANDARD_AUTHORIZER
from ottla.security.principal import Principal
from ottla.server.api import dispatch
from ottla.server.api.outcomes import outcome_of
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request
from ottla.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest

_Topic = CreateTopicsRequest.CreatableTopic
REQUESTS: list[Request] = [
    UnregisterBrokerRequest(broker_id=2),
    UpdateFeaturesRequest(feature_updates=[]),
    AlterPartitionReassignmentsRequest(topics=[]),
    ListPartitionReassignmentsRequest(topics=None),
    ElectLeadersRequest(topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])]),
    CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.Topic(name="t", count=2, assignments=None)], timeout_ms=0, validate_only=False
    ),
    CreateTopicsRequest(topics=[_Topic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])]),
    DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=0),
    CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=2,
                resource_name="t",
                resource_pattern_type=3,
                principal="User:a",
                host="*",
                operation=3,
                permission_type=3,
            )
        ]
    ),
    DeleteAclsRequest(
        filters=[
            DeleteAclsRequest.Filter(
                resource_type_filter=2,
                resource_name_filter=None,
                pattern_type_filter=3,
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
    ),
    AlterUserScramCredentialsRequest(
        deletions=[AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="a", mechanism=1)], upsertions=[]
    ),
    AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[AlterClientQuotasRequest.EntryData.EntityData(entity_type="user", entity_name="a")],
                ops=[AlterClientQuotasRequest.EntryData.OpData(key="producer_byte_rate", value=1.0, remove=False)],
            )
        ],
        validate_only=False,
    ),
    CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1),
    RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1),
    ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1),
]


def codes(response: Any) -> set[int]:
    """All error codes in a response, of the whole or of its parts."""
    parts = [getattr(response, name, None) for name in ("topics", "results", "responses", "filter_results", "entries")]
    found = [part.error_code for each in parts for part in each or ()]
    return set(found or [response.error_code])


def test_every_api_that_is_forwarded_says_how_it_is_refused() -> None:
    dispatch.load_handlers()
    forwarded = {endpoint.name for endpoint in dispatch.ENDPOINTS.values() if endpoint.forwarded}
    refusing = {endpoint.name for endpoint in dispatch.ENDPOINTS.values() if endpoint.forwarded and endpoint.refusing}
    assert forwarded - refusing == {"AddRaftVoter", "RemoveRaftVoter", "DescribeQuorum"}, "raft answers these itself"
    assert refusing == {type(request).name for request in REQUESTS}


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).name)
def test_a_node_that_is_not_the_controller(request_: Request) -> None:
    """It is a typed outcome for those who can ask another node, NOT_CONTROLLER for those who cannot."""
    admin = Admin(properties={"authorizer.class.name": STANDARD_AUTHORIZER, "delegation.token.secret.key": "key"})
    admin.context.principal = Principal.user("alice")
    admin.member.controller.close()
    endpoint = dispatch.ENDPOINTS[type(request_).key]
    admin.context.request_version = endpoint.high

    async def outcomes() -> tuple[Any, Any, Any]:
        late = ApiError(ErrorCode.REQUEST_TIMED_OUT)
        return (
            await outcome_of(endpoint.decide(request_, admin.context)),
            await outcome_of(endpoint.handler(request_, admin.context)),
            await outcome_of(endpoint.refused(request_, admin.context, late)),
        )

    decided, answered, timed_out = asyncio.run(outcomes())
    assert isinstance(decided, NotController)
    assert codes(answered) == {ErrorCode.NOT_CONTROLLER}
    assert codes(timed_out) == {ErrorCode.REQUEST_TIMED_OUT}
