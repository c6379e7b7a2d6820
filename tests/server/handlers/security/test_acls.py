"""ACLs of a cluster: any broker takes changes of them, every node answers by them, also after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.nodes import active, ask, run, running, settings, until
from tests.support.requests.acls import DENY, GUARDED, creation, described, filter_of

from ottla.client.errors import ConnectionLost
from ottla.cluster.journal import Item
from ottla.cluster.snapshot import snapshot
from ottla.machine.stepped import in_one_go
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import Config
from ottla.model.errors import ErrorCode
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.principal import Principal
from ottla.server.node import Node
from ottla.server.security.authorization import Authorization
from ottla.wire.journal.cluster_metadata import RemoveAccessControlEntryRecord
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest

ALICE = Principal.user("alice")


def allows(node: Node, name: str = "t") -> bool:
    authorizer = node.rooms.security.authorization.authorizer
    assert authorizer is not None
    return authorizer.allows(ALICE, "127.0.0.1", AclOperation.READ, AclResourceType.TOPIC, name)


def test_every_node_follows_what_any_broker_takes(tmp_path: Path) -> None:
    values = [{**each, **GUARDED} for each in settings(tmp_path, 3)]

    async def test() -> None:
        async with running(values) as nodes:
            asked, _ = [node for node in nodes.values() if node is not active(nodes)]
            answer = await ask(asked, CreateAclsRequest(creations=[creation(), creation("u")]))
            assert [each.error_code for each in answer.results] == [0, 0]
            await until(lambda: all(map(allows, nodes.values())))
            assert not any(allows(node, "other") for node in nodes.values())
            listed = await ask(active(nodes), described(resource_name_filter="t"), listener="CONTROLLER")
            assert [(each.resource_name, len(each.acls)) for each in listed.resources] == [("t", 1)]
            await ask(asked, CreateAclsRequest(creations=[creation(permission_type=DENY)]))
            await until(lambda: not any(map(allows, nodes.values())))
            gone = await ask(asked, DeleteAclsRequest(filters=[filter_of(permission_type=DENY)]))
            assert [each.permission_type for each in gone.filter_results[0].matching_acls] == [DENY]
            await until(lambda: all(map(allows, nodes.values())))
        async with running(values) as nodes:  # from the log
            await until(lambda: all(allows(node) and allows(node, "u") for node in nodes.values()))

    run(test)


def test_acls_come_with_snapshots(tmp_path: Path) -> None:
    """What is not in the snapshot is gone."""

    async def test() -> None:
        async with running([{**each, **GUARDED} for each in settings(tmp_path, 1)]) as nodes:
            (node,) = nodes.values()
            await ask(node, CreateAclsRequest(creations=[creation("before")]))
            assert allows(node, "before")
            host = node.metadata
            other = host.state.copy()
            for id in list(other.acls):
                other.apply(RemoveAccessControlEntryRecord(id=id))
            other.apply(AclEntry(2, "after", 3, str(ALICE), "*", 3, 3).as_record(bytes(range(16))))
            items = [Item(at, 1, 0, entry) for at, entry in enumerate(snapshot(other))]
            in_one_go(host.loading_snapshot(items, host.end_offset, host.last_epoch))
            assert allows(node, "after") and not allows(node, "before")

    run(test)


def test_before_the_metadata_is_read_only_super_users_pass() -> None:
    opened = {**GUARDED, "allow.everyone.if.no.acl.found": "true", "super.users": "User:root"}
    authorization = Authorization(Config(opened, BROKER_SETTINGS))
    place = "127.0.0.1", AclOperation.READ, AclResourceType.TOPIC, "t"
    assert authorization.authorizer is not None
    assert not authorization.authorizer.allows(ALICE, *place)
    assert authorization.authorizer.allows(Principal.user("root"), *place)
    before = authorization.authorizer.version
    authorization.complete()
    assert authorization.authorizer.allows(ALICE, *place)
    assert authorization.authorizer.version != before


def test_without_an_authorizer_there_are_no_acls(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 1)) as nodes:
            (node,) = nodes.values()
            assert node.rooms.security.authorization.authorizer is None
            made = await ask(node, CreateAclsRequest(creations=[creation(), creation("u")]))
            assert [(each.error_code, each.error_message) for each in made.results] == [
                (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
            ] * 2
            gone = await ask(node, DeleteAclsRequest(filters=[filter_of()]))
            assert gone.filter_results[0].error_code == ErrorCode.SECURITY_DISABLED
            listed = await ask(node, described())
            assert (listed.error_code, listed.error_message) == (
                ErrorCode.SECURITY_DISABLED,
                "No Authorizer is configured on the broker",
            )

    run(test)


def test_unknown_elements_close_the_connection_on_every_broker(tmp_path: Path) -> None:
    async def test() -> None:
        async with running([{**each, **GUARDED} for each in settings(tmp_path, 3)]) as nodes:
            for node in nodes.values():
                for request in (
                    CreateAclsRequest(creations=[creation(operation=0)]),
                    DeleteAclsRequest(filters=[filter_of(permission_type=0)]),
                    described(resource_type_filter=0),
                ):
                    with pytest.raises(ConnectionLost):
                        await ask(node, request)
            assert not active(nodes).metadata.state.acls

    run(test)
