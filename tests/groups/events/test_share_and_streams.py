"""What a coordinator remembers of share groups and streams groups."""

from tests.groups.events.telling import told
from tests.groups.share import stage as share
from tests.groups.streams import stage as streams


def test_share_group() -> None:
    stage, verbs, _ = share.make_stage()
    verbs["beat"]("anna", "orders")
    verbs["begun"]("orders:0,1,2,3")
    assert told(stage, share.GROUP)[:2] == ["joined anna (2, 1)", "rebalance_began (2, 1)"]
    known = len(told(stage, share.GROUP))
    verbs["beat"]("anna", "bills", epoch="2")
    assert told(stage, share.GROUP)[known : known + 2] == [
        "subscription_changed anna +bills -orders (3, 1)",
        "rebalance_began (3, 1)",
    ]
    verbs["beat"]("bert", "bills")
    verbs["beat"]("bert", epoch="-1")
    stage.advance(60_000)
    assert told(stage, share.GROUP)[-4:] == [
        "left bert (5, 1)",
        "rebalance_began (5, 1)",
        "timed_out anna share.session.timeout.ms=45000 (6, 0)",
        "empty (6, 0)",
    ]


def test_streams_group() -> None:
    stage = streams.Streamers()
    stage.join("anna")
    lines = told(stage, streams.GROUP)
    assert [line.split()[0] for line in lines] == ["joined", "rebalance_began", "assigned", "rebalance_ended"]
    stage.beat("anna")
    assert told(stage, streams.GROUP) == lines, "a heartbeat without news is no event"
    stage.join("bert")
    stage.leave("bert")
    stage.advance(60_000)
    kinds = [line.rsplit("(")[0].strip() for line in told(stage, streams.GROUP)]
    assert kinds[-4:] == [
        "left bert",
        "rebalance_began",
        "timed_out anna streams.session.timeout.ms=45000",
        "empty",
    ]
