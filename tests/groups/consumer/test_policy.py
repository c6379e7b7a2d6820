"""group.consumer.migration.policy: which ways a group may change its protocol; and limits of size on the way."""

import pytest
from tests.groups.consumer.stage import Consumers

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup

POLICY = "group.consumer.migration.policy"
UP = ("upgrade", "BIDIRECTIONAL")
DOWN = ("downgrade", "bidirectional")


def classic_group(**settings: str) -> Consumers:
    stage = Consumers(**settings)
    stage.old_join("olga", "orders", instance="o")
    stage.advance(1)
    stage.old_sync("olga")
    stage.told()
    return stage


@pytest.mark.parametrize("policy", ["disabled", *DOWN[:1], *UP])
def test_upgrade(policy: str) -> None:
    stage = classic_group(**{POLICY: policy})
    stage.join("nina", "orders")
    assert isinstance(stage.group, ConsumerGroup if policy in UP else ClassicGroup)
    assert (stage.told()[-1] == "nina: GROUP_ID_NOT_FOUND") == (policy not in UP)


@pytest.mark.parametrize("policy", ["disabled", *UP[:1], *DOWN])
def test_downgrade_when_the_last_new_member_leaves(policy: str) -> None:
    stage = Consumers(**{POLICY: policy})
    stage.join("nina", "orders")
    stage.old_join("olga", "orders")
    if policy == "disabled":
        assert stage.told()[-1] == "olga: INCONSISTENT_GROUP_PROTOCOL"
        return
    stage.leave("nina")
    assert isinstance(stage.group, ClassicGroup if policy in DOWN else ConsumerGroup)


@pytest.mark.parametrize("policy", [*UP[:1], *DOWN])
def test_downgrade_when_a_static_member_comes_back(policy: str) -> None:
    """What its regular expression meant is forgotten either way."""
    stage = Consumers(**{POLICY: policy})
    stage.join("nina", instance="n", regex="or.*")
    stage.advance(1)
    stage.leave("nina", "-2")
    stage.old_join("olga", "orders", instance="n")
    assert "+ or.* means deleted" in stage.told()
    assert isinstance(stage.group, ClassicGroup if policy in DOWN else ConsumerGroup)
    if isinstance(stage.group, ConsumerGroup):
        assert not stage.group.regexes
        assert stage.group.names_with(stage.group.members) == {"orders"}


def test_no_downgrade_to_a_group_that_is_too_big() -> None:
    stage = Consumers(**{"group.max.size": "1"})
    stage.join("nina", "orders")
    stage.old_join("olga", "orders")
    stage.old_join("otto", "orders")
    stage.leave("nina")
    assert isinstance(stage.group, ConsumerGroup)
    stage.old_leave("otto")
    assert isinstance(stage.group, ClassicGroup)


def test_no_upgrade_to_a_group_that_is_too_big() -> None:
    stage = classic_group(**{"group.consumer.max.size": "1"})
    stage.old_join("otto", "orders")
    stage.join("nina", "orders")
    assert stage.told()[-1] == "nina: GROUP_ID_NOT_FOUND"
    assert isinstance(stage.group, ClassicGroup)
