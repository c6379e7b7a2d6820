"""A node with things that nobody may see, and what of its state must not change."""

from __future__ import annotations

import logging
from typing import Any

from tests.server.api.guard.granted import Grants
from tests.server.api.guard.odd_requests import GROUP, TOPIC, TRANSACTION, USER
from tests.server.talk import create, produce
from tests.support.ports import free_ports
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model.settings.authorizer import STANDARD_AUTHORIZER
from ottla.security.acls import AclOperation, AclPermission, AclResourceType
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest

# Values that only a client with rights may read.
RETENTION_MS = "987654321012"
METADATA = "hidden-note"
VALUE = b"hidden-record"
SECRETS = [each.encode() for each in (TOPIC, GROUP, TRANSACTION, USER, RETENTION_MS, METADATA)] + [VALUE]


class Tracebacks(logging.Handler):
    """Remembers what is logged as an error, or with a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.found.append(self.format(record))


def settings() -> dict[str, object]:
    client, controller = free_ports(2)
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "metadata.max.idle.interval.ms": 0,  # otherwise the metadata log grows by itself
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }


class HiddenNode:
    def __init__(self, broker: EmbeddedBroker) -> None:
        assert broker.node is not None
        self.broker, self.node, self.grants = broker, broker.node, Grants()
        with RawConnection(broker.bootstrap) as admin:
            self.topic_id = create(admin, TOPIC, 2, retention_ms=RETENTION_MS)
            for index in (0, 1):  # which opens the partition; otherwise that is done in the background
                assert produce(admin, TOPIC, [VALUE], index=index)[0] == 0
            _fill(admin)
            self.known = self._listed(admin)
        authorization = self.node.rooms.security.authorization
        authorization._asked = authorization._silent = self.grants  # in place of those of the metadata
        self.grants.grant()

    def state(self) -> Any:
        """What a client without rights must not change."""
        logs = {
            (each.topic, each.index): (each.log.log_start_offset, each.log.next_offset)
            for each in self.node.partitions.opened()
        }
        return self.node.metadata.end_offset, self.node.member.quorum.end_offset, logs

    def listed(self) -> Any:
        """The groups and transactions that the node knows, also those that are not in a journal."""
        self.grants.grant_everything()
        with RawConnection(self.broker.bootstrap) as admin:
            found = self._listed(admin)
        self.grants.grant()
        return found

    def _listed(self, admin: RawConnection) -> Any:
        groups: Any = admin.call(ListGroupsRequest(), 4)
        transactions: Any = admin.call(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0)
        return (
            sorted(each.group_id for each in groups.groups),
            sorted(each.transactional_id for each in transactions.transaction_states),
        )


def _fill(admin: RawConnection) -> None:
    """A group with an offset, a transactional id, an ACL and a quota."""
    for kind, name in enumerate((GROUP, TRANSACTION)):
        admin.call(FindCoordinatorRequest(key=name, key_type=kind), 3)
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1, committed_metadata=METADATA)
    commit = OffsetCommitRequest(
        group_id=GROUP, member_id="", topics=[OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])]
    )

    def committed() -> bool:
        answer: Any = admin.call(commit, 7)
        return bool(answer.topics[0].partitions[0].error_code == 0)

    until(committed)
    asked = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=600_000)

    def made() -> bool:
        answer: Any = admin.call(asked, 2)
        return bool(answer.error_code == 0)

    until(made)
    entry = CreateAclsRequest.AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=TOPIC,
        principal=f"User:{USER}",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermission.ALLOW,
    )
    admin.call(CreateAclsRequest(creations=[entry]), 3)
    quota = AlterClientQuotasRequest.EntryData
    admin.call(
        AlterClientQuotasRequest(
            entries=[
                quota(
                    entity=[quota.EntityData(entity_type="user", entity_name=USER)],
                    ops=[quota.OpData(key="producer_byte_rate", value=1e6, remove=False)],
                )
            ],
            validate_only=False,
        ),
        1,
    )
