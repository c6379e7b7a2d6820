"""What a coordinator remembers of a consumer group, and of one that changes its protocol."""

from tests.groups.consumer.stage import GROUP, Consumers
from tests.groups.events.telling import told

from ottla.groups.events.describe import DescribeGroupEvents
from ottla.groups.events.event import Happening


def test_joining() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    assert told(stage, GROUP) == [
        "joined anna (2, 1)",
        "rebalance_began (2, 1)",
        "assigned (2, 1)",
        "rebalance_ended in 0 ms (2, 1)",
    ]
    stage.advance(1_000)
    stage.join("bert", "orders")
    assert told(stage, GROUP)[4:] == ["joined bert (3, 2)", "rebalance_began (3, 2)", "assigned (3, 2)"]
    stage.advance(1_000)
    stage.beat("anna")
    stage.beat("anna", confirm=True)
    stage.advance(1_000)
    stage.beat("bert")
    assert told(stage, GROUP)[7:] == ["rebalance_ended in 2000 ms (3, 2)"]
    known = told(stage, GROUP)
    for name in ("anna", "bert"):
        stage.beat(name)
    assert told(stage, GROUP) == known, "a heartbeat without news is no event"


def test_session_that_ends() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    stage.advance(60_000)
    assert told(stage, GROUP)[4:] == ["timed_out anna consumer.session.timeout.ms=45000 (3, 0)", "empty (3, 0)"]


def test_revocation_that_is_not_confirmed() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    stage.join("bert", "orders")
    stage.beat("anna")  # is told to revoke
    for _ in range(4):
        stage.advance(5_000)
        stage.beat("anna")
        stage.beat("bert")
    assert "timed_out anna max.poll.interval.ms=20000 (4, 1)" in told(stage, GROUP)


def test_subscriptions_and_leaving() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    stage.beat("anna", "bills")
    assert told(stage, GROUP)[4] == "subscription_changed anna +bills -orders (3, 1)"
    stage.leave("anna")
    assert told(stage, GROUP)[-2:] == ["left anna (4, 0)", "empty (4, 0)"]


def test_static_members() -> None:
    stage = Consumers()
    stage.join("anna", "orders", instance="i1")
    known = len(told(stage, GROUP))
    stage.join("bert", "orders", instance="i1")
    assert told(stage, GROUP)[known:] == ["refused bert@i1 UNRELEASED_INSTANCE_ID (2, 1)"]
    stage.leave("anna", epoch="-2")
    stage.join("carl", "orders", instance="i1")
    assert told(stage, GROUP)[known + 1 :] == [
        "away anna@i1 consumer.session.timeout.ms=45000 (2, 1)",
        "replaced carl@i1 in place of anna (2, 1)",
    ]


def test_fenced_and_refused() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    known = len(told(stage, GROUP))
    stage.beat("anna", epoch="7")
    stage.beat("anna", epoch="7")
    assert told(stage, GROUP)[known:] == ["fenced anna FENCED_MEMBER_EPOCH 2 times (2, 1)"]
    for name in ("bert", "carl", "dora", "emil"):
        stage.join(name, "orders")
    assert told(stage, GROUP)[-1] == "refused emil group.consumer.max.size=4 GROUP_MAX_SIZE_REACHED (5, 4)"


def test_topics_that_change() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    known = len(told(stage, GROUP))
    stage.topic("unread", "3")
    stage.topic("orders", "8")
    stage.beat("anna")
    assert told(stage, GROUP)[known:] == [
        "topics_changed orders=8 (2, 1)",
        "rebalance_began (3, 1)",
        "assigned (3, 1)",
        "rebalance_ended in 0 ms (3, 1)",
    ]
    stage.topic("orders", "0")
    assert told(stage, GROUP)[-1] == "topics_changed orders=deleted (3, 1)"


def test_upgrade_and_downgrade() -> None:
    stage = Consumers()
    stage.old_join("anna", "orders")
    stage.advance(1)
    stage.old_sync("anna")
    known = len(told(stage, GROUP))
    stage.join("bert", "orders")
    assert told(stage, GROUP)[known : known + 3] == [
        "upgraded (2, 2)",
        "joined bert (2, 2)",
        "rebalance_began (2, 2)",
    ]
    known = len(told(stage, GROUP))
    stage.leave("bert")
    assert [each.split()[0] for each in told(stage, GROUP)[known:]] == ["left", "downgraded", "rebalance_began"]


def test_classic_member_in_a_consumer_group_has_its_own_session() -> None:
    stage = Consumers()
    stage.join("bert", "orders")
    stage.old_join("anna", "orders")
    stage.old_sync("anna")
    for _ in range(3):
        stage.advance(5_000)
        stage.beat("bert")
    (timed_out,) = (each for each in told(stage, GROUP) if each.startswith("timed_out"))
    assert timed_out.endswith("session.timeout.ms=10000 (4, 1)")
    assert "consumer." not in timed_out


def test_new_coordinator_remembers_nothing_and_says_since_when() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    stage.advance(1_000)
    stage.restart()
    history = stage.machine.decide(DescribeGroupEvents(GROUP), stage.now_ms).reply
    assert (history.since_ms, list(history.events)) == (stage.now_ms, [])


def test_decision_that_is_not_committed_is_not_told() -> None:
    stage = Consumers()
    stage.join("anna", "orders")
    known = len(told(stage, GROUP))
    stage.hold()
    stage.join("bert", "orders")
    asked = []
    stage._runner.submit(DescribeGroupEvents(GROUP), stage.moment(), asked.append)
    assert asked == []
    stage.commit()
    assert Happening.JOINED in [each.kind for each in asked[0].events[known:]]
