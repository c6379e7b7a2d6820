"""What a coordinator remembers of a classic group."""

from tests.groups.classic.stage import GROUP, Classics
from tests.groups.events.telling import told

from ottla.groups.classic.arguments import Leaver
from ottla.groups.classic.leave import ClassicLeave

DELAY_MS = 3_000  # of the first rebalance


def formed(*names: str, stage: Classics | None = None) -> Classics:
    """A stable group of these members, the first of which leads."""
    stage = stage or Classics()
    for name in names:
        stage.join(name, version="3")
    stage.advance(2 * DELAY_MS)  # others than the first extend it
    for name in names:
        stage.sync(name)
    return stage


def news(stage: Classics, known: int) -> list[str]:
    return told(stage, GROUP)[known:]


def test_first_rebalance() -> None:
    stage = formed("anna")
    assert told(stage, GROUP) == [
        "joined anna (0, 1)",
        "rebalance_began (0, 1)",
        "rebalance_ended range in 6000 ms (1, 1)",
    ]


def test_session_that_ends() -> None:
    stage = formed("anna", "bert")
    known = len(told(stage, GROUP))
    stage.advance(6_000)
    stage.heartbeat("anna")
    stage.advance(6_000)
    assert news(stage, known) == ["timed_out bert session.timeout.ms=10000 (1, 1)", "rebalance_began (1, 1)"]
    stage.join("anna")
    stage.advance(500)
    stage.sync("anna")
    assert news(stage, known + 2) == ["rebalance_ended range in 2500 ms (2, 1)"]


def test_member_that_does_not_rejoin_in_time() -> None:
    stage = formed("anna", "bert")
    known = len(told(stage, GROUP))
    stage.join("carl", version="3")
    stage.join("anna")
    for _ in range(12):
        stage.advance(5_000)
        stage.heartbeat("bert")
    assert news(stage, known) == [
        "joined carl (1, 3)",
        "rebalance_began (1, 3)",
        "timed_out bert max.poll.interval.ms=60000 (2, 2)",
    ]


def test_members_of_connect_have_another_setting() -> None:
    stage = Classics()
    stage.join("anna", type="connect", version="3")
    stage.advance(DELAY_MS)
    for _ in range(12):
        stage.advance(5_000)
        stage.heartbeat("anna")
    assert told(stage, GROUP)[2:] == ["timed_out anna rebalance.timeout.ms=60000 (2, 0)", "empty (2, 0)"]


def test_member_that_does_not_sync() -> None:
    stage = Classics()
    stage.join("anna", version="3", session="100000")
    stage.advance(DELAY_MS + 60_000)
    assert told(stage, GROUP) == [
        "joined anna (0, 1)",
        "rebalance_began (0, 1)",
        "timed_out anna max.poll.interval.ms=60000 (2, 0)",
        "empty (2, 0)",
    ]


def test_reasons_of_clients() -> None:
    stage = formed("anna", "bert")
    known = len(told(stage, GROUP))
    leaver = Leaver(stage.member_ids["bert"], None, "consumer poll timeout has expired.")
    stage.submit("bert", ClassicLeave(GROUP, (leaver,)))
    assert news(stage, known)[0] == "left bert consumer poll timeout has expired. (1, 1)"


def test_removal_by_instance_id() -> None:
    stage = Classics()
    stage.join("anna", instance="i1")
    stage.advance(DELAY_MS)
    stage.sync("anna")
    stage.leave("@i1")
    assert told(stage, GROUP)[3:] == ["left anna@i1 removed by its instance id (2, 0)", "empty (2, 0)"]


def test_static_member_that_is_replaced() -> None:
    stage = Classics()
    stage.join("anna", instance="i1")
    stage.advance(DELAY_MS)
    stage.sync("anna")
    former = stage.member_ids["anna"]
    stage.join("anna", instance="i1", member="")
    assert told(stage, GROUP)[3:] == [f"replaced anna@i1 in place of {former} (1, 1)"]


def test_refusals_are_counted_once() -> None:
    stage = formed("anna", stage=Classics(**{"group.max.size": "1"}))
    known = len(told(stage, GROUP))
    for _ in range(3):
        stage.join("carl", version="3")
    assert news(stage, known) == ["refused carl group.max.size=1 GROUP_MAX_SIZE_REACHED 3 times (1, 1)"]
    stage.join("dora", type="connect", version="3")
    assert news(stage, known + 1) == ["refused dora group.max.size=1 GROUP_MAX_SIZE_REACHED (1, 1)"]


def test_leader_that_asks_for_a_rebalance() -> None:
    stage = formed("anna")
    known = len(told(stage, GROUP))
    stage.join("anna")
    assert news(stage, known) == ["rejoined anna (2, 1)", "rebalance_began (2, 1)"]


def test_heartbeats_are_no_events() -> None:
    stage = formed("anna", "bert")
    known = told(stage, GROUP)
    for name in ("anna", "bert") * 3:
        stage.heartbeat(name)
    assert told(stage, GROUP) == known
