"""kill -9 while a transaction ends: after the restart all of it counts, or nothing, and never less than was said."""

from pathlib import Path
from typing import Any

from tests.server.talk import FETCH_VERSION, eventually, fetch_request
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional

from ottla.records.batch import headers
from ottla.wire.frame import request_frame
from ottla.wire.messages.txns.end_txn import EndTxnRequest

ROUNDS = 4
PARTITIONS = 3
BY_NAME = 12


def open_transactions(connection: RawConnection) -> tuple[list[int], list[int]]:
    """How many batches and how many of them in aborted transactions each partition has; none may be undecided."""
    counts, aborted = [], []
    for index in range(PARTITIONS):
        answer: Any = connection.call(fetch_request({("t", index): 0}, isolation=1), FETCH_VERSION)
        (found,) = answer.responses[0].partitions
        assert found.last_stable_offset == found.high_watermark
        counts.append(sum(not header.is_control for _, header in headers(memoryview(bytes(found.records or b"")))))
        aborted.append(len(found.aborted_transactions or ()))
    return counts, aborted


def test_all_or_nothing(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path).start()
    side = Side("ottla", node.bootstrap)
    try:
        side.create("t", PARTITIONS)
        one = Transactional(side, "x").find()
        for round in range(ROUNDS):
            one.begin()
            for index in range(PARTITIONS):
                one.produce("t", index, version=BY_NAME)
            end = EndTxnRequest(
                transactional_id="x", producer_id=one.producer_id, producer_epoch=one.epoch, committed=True
            )
            with RawConnection(node.bootstrap) as connection:
                connection.send(request_frame(end, 5, 1, "killer"))
                if round % 2:
                    connection.receive()  # it was said that it is committed
                node.kill()
            side.close()
            node.start()
            one.side = side = Side("ottla", node.bootstrap)
            if round % 2 == 0:
                one.end(epoch=one.epoch)  # asks again, whatever became of it
            eventually(lambda: one.describe()["transaction_state"] == "CompleteCommit", "the end")
            with RawConnection(node.bootstrap) as connection:
                assert open_transactions(connection) == ([round + 1] * PARTITIONS, [0] * PARTITIONS)
    finally:
        side.close()
        node.stop()
