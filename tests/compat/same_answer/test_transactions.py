"""Transactions: the same requests, good and bad, get the same answers from Ottla as from a real Kafka."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side
from tests.support.requests.transactional import CONCURRENT_TRANSACTIONS, Transactional

from ottla.machine.keyed import Entry, entries_of, types_of
from ottla.model.java import java_abs, java_hash
from ottla.records.batch import BatchHeader, headers
from ottla.records.control import read_marker
from ottla.wire.journal import transaction_state
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest

INT32_MAX = 2**31 - 1
ENDS_WITH_BUMP = 5  # EndTxn from this version on raises the epoch
PRODUCE_VERSIONS = (3, 10, 11, 12, 13)  # where something changed for transactions
ODD_PATTERNS = (".*", "(", "[", "*", "a{2,1}", r"\Q.\E", "(?=a)", r"(a)\1", "a*+", r"(?i)\p{Latin}+", "(?s).+$", r"\C")


@pytest.mark.parametrize("version", range(1, 7))
def test_find_coordinator(both: Both, new_name: Names, version: int) -> None:
    id = new_name("txn")

    def script(side: Side) -> Iterator[Plain]:
        Transactional(side, id).find()
        for key in (id, "", "a b"):
            yield side.call(FindCoordinatorRequest(key=key, key_type=1, coordinator_keys=[key]), version)
        yield side.call(FindCoordinatorRequest(key=id, key_type=1, coordinator_keys=[id, "other", id]), version)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(InitProducerIdRequest))
def test_init(both: Both, new_name: Names, version: int) -> None:
    id = new_name("txn")

    def script(side: Side) -> Iterator[Plain]:
        one = Transactional(side, id).find()
        yield one.describe()
        yield one.init(version)
        yield one.init(version)  # the next epoch
        yield one.describe()
        for timeout_ms in (0, -1, 900_001, INT32_MAX, 1, 900_000):
            yield one.init(version, timeout_ms)
        yield Transactional(side, "").init(version)
        if version >= 3:
            yield one.init(version, producer_id=one.producer_id)  # an id without an epoch
            yield one.init(version, producer_epoch=0)
            yield one.init(version, producer_id=one.producer_id + 17, producer_epoch=0)
            mine, before = one.producer_id, one.epoch
            yield one.init(version, producer_id=mine, producer_epoch=before)  # KIP-360: goes on
            yield one.init(version, producer_id=mine, producer_epoch=before)  # asked again
            yield one.init(version, producer_id=mine, producer_epoch=before - 1)
            yield one.init(version, producer_id=mine, producer_epoch=before + 9)
            yield one.init(version)
            yield one.init(version, producer_id=mine, producer_epoch=before)
            yield Transactional(side, f"{id}-new").find().init(version, producer_id=5, producer_epoch=7)

    both.same(script)


def test_init_aborts_what_is_open(both: Both, new_name: Names) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        old, new = Transactional(side, id).find().begin(), Transactional(side, id)
        old.produce(topic)
        yield old.describe()
        yield new.init()  # CONCURRENT_TRANSACTIONS
        yield old.rest().describe()
        new.begin()
        yield new.epoch
        yield old.produce(topic, sequence=1)
        yield old.produce(topic, version=11, sequence=1)
        for version in range(6):
            yield old.end(version=version)
        for version in range(4):
            yield old.add(topic, 0, version=version)
        yield old.init(producer_id=old.producer_id, producer_epoch=old.epoch)
        yield new.produce(topic)
        yield new.ended()
        yield new.describe()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(AddPartitionsToTxnRequest))
def test_add_partitions(both: Both, new_name: Names, version: int) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        one = Transactional(side, id).find()
        one.producer_id, one.epoch = 1, 1
        yield one.add(topic, 0, version=version)  # nobody has begun
        one.begin()
        yield one.add(topic, 0, version=version)
        yield one.describe()
        yield one.add(topic, 0, 1, version=version)
        yield one.add(topic, 1, version=version)
        yield one.describe()
        yield one.add(topic, 2, 3, version=version)  # one that does not exist
        yield one.add(topic, -1, version=version)
        yield one.add(f"{topic}-missing", 0, version=version)
        yield one.add(topic, 0, version=version, epoch=one.epoch + 1)
        yield one.add(topic, 0, version=version, epoch=one.epoch - 1)
        yield one.add(topic, 0, version=version, producer_id=one.producer_id + 100)
        yield one.add(topic, version=version)
        yield Transactional(side, "").add(topic, 0, version=version)
        if version >= 4:
            yield one.add(topic, 0, 1, 2, version=version, verify=True)
            yield one.add(topic, 0, version=version, verify=True, epoch=one.epoch + 1)
            yield one.add(topic, 0, version=version, verify=True, producer_id=one.producer_id + 100)
            yield one.add(f"{topic}-missing", 0, version=version, verify=True)
            yield Transactional(side, f"{id}-unknown").add(topic, 0, version=version, verify=True)
            yield Transactional(side, "").add(topic, 0, version=version, verify=True)
        end = ENDS_WITH_BUMP if version >= 4 else 4
        yield one.ended(version=end)
        yield one.describe()
        yield one.add(topic, 2, version=version)
        yield one.describe()
        yield one.ended(False, version=end)

    both.same(script)


@pytest.mark.parametrize("version", [4, 5])
def test_add_partitions_of_many_transactions(both: Both, new_name: Names, version: int) -> None:
    ids, topic = [new_name("txn") for _ in range(3)], new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        producers = [Transactional(side, id).find().begin() for id in ids]
        one = AddPartitionsToTxnRequest.Transaction
        batch = [
            one(
                transactional_id=each.id,
                producer_id=each.producer_id,
                producer_epoch=each.epoch + at % 2,
                verify_only=at == 2,
                topics=[Topic(name=topic, partitions=[0, 1])],
            )
            for at, each in enumerate(producers)
        ]
        yield side.call(AddPartitionsToTxnRequest(transactions=batch), version)
        yield [each.describe() for each in producers]

    both.same(script)


@pytest.mark.parametrize("version", versions_of(AddOffsetsToTxnRequest))
def test_add_offsets(both: Both, new_name: Names, version: int) -> None:
    id, group = new_name("txn"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        one = Transactional(side, id).find()
        one.producer_id, one.epoch = 1, 1
        yield one.add_offsets(group, version)
        one.begin()
        yield one.add_offsets(group, version)
        yield one.describe()
        yield one.add_offsets(group, version, epoch=one.epoch + 1)
        yield one.add_offsets(group, version, producer_id=one.producer_id + 100)
        yield one.add_offsets("", version)
        yield Transactional(side, "").add_offsets(group, version)
        yield one.ended(version=4)
        yield one.describe()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(EndTxnRequest))
def test_end(both: Both, new_name: Names, version: int) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        one = Transactional(side, id).find()
        one.producer_id, one.epoch = 1, 1
        yield one.end(version=version)
        yield Transactional(side, "").end(version=version)
        one.begin()
        yield one.end(True, version)  # of nothing
        yield one.ended(False, version)
        yield one.describe()
        for commit in (True, False):
            one.begin()
            yield one.add(topic, 0)
            yield one.end(commit, version, epoch=one.epoch + 1)
            yield one.end(commit, version, epoch=one.epoch - 1)
            yield one.end(commit, version, producer_id=one.producer_id + 100)
            before = one.epoch
            yield one.ended(commit, version)
            yield one.describe()
            yield one.ended(commit, version, epoch=before)  # asked again
            yield one.ended(not commit, version, epoch=before)
            yield one.ended(commit, version)  # the next transaction, which is empty
            yield one.ended(not commit, version)
            yield one.describe()

    both.same(script)


def test_next_end_before_the_markers_are_written(both: Both, new_name: Names) -> None:
    """The producer of the next, empty transaction waits for the markers of the one before, and is not fenced."""
    id, topic = new_name("txn"), new_name("topic")
    waited: dict[str, int] = {}

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 20)
        one = Transactional(side, id).find().begin()
        for commit in (True, False) * 5:
            yield one.add(topic, *range(20))
            yield one.end(commit)
            answer = one.end(False)
            while answer["error_code"] == CONCURRENT_TRANSACTIONS:
                waited[side.name] = waited.get(side.name, 0) + 1
                answer = one.end(False)
            yield answer
            yield one.rest().describe()

    both.same(script)
    assert waited.get(both.kafka.name), "no end came before the markers of the transaction before were written"


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce(both: Both, new_name: Names, version: int) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        one = Transactional(side, id).find()
        one.producer_id, one.epoch = 1, 1
        yield one.produce(topic, 0, version)  # nobody has begun
        one.begin()
        yield one.produce(topic, 0, version)  # old clients: not added
        yield one.describe()
        one.add(topic, 0)
        yield one.produce(topic, 0, version)
        yield one.produce(topic, 0, version)
        yield one.produce(topic, 0, version, sequence=0)  # a duplicate
        yield one.produce(topic, 0, version, sequence=9)
        yield one.produce(topic, 1, version, sequence=4)  # may one begin in the middle?
        yield one.produce(topic, 1, version)
        yield one.describe()
        yield one.produce(topic, 0, version, transactional=False)
        yield one.produce(topic, 2, version, transactional=False)
        yield one.produce(topic, 0, version, transactional_id=None)
        yield one.produce(topic, 2, version, transactional_id=None)
        yield one.produce(topic, 2, version, transactional_id="")
        yield one.produce(topic, 2, version, transactional_id=f"{id}-other")
        for field in ({"epoch": one.epoch + 1}, {"epoch": one.epoch - 1}, {"producer_id": one.producer_id + 50}):
            yield one.produce(topic, 0, version, **field)
            yield one.produce(topic, 2, version, **field)
        yield one.produce(topic, 7, version)
        yield one.produce(f"{topic}-missing", 0, version)
        yield one.produce("__transaction_state", 0, version)
        yield one.ended(version=5 if version >= 12 else 4)
        yield one.produce(topic, 0, version, epoch=one.epoch - 1)
        yield one.describe()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(ProduceRequest))
def test_every_version_of_produce(both: Both, new_name: Names, version: int) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        one = Transactional(side, id).find().begin()
        for commit in (True, False):
            if version < 12:
                yield one.add(topic, 0)
            yield one.produce(topic, 0, version)
            yield one.produce(topic, 0, version)
            yield one.ended(commit, version=5 if version >= 12 else 4)
        yield one.describe()
        yield describe_producers(side, topic)

    both.same(script)


def describe_producers(side: Side, topic: str, *partitions: int) -> Plain:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(partitions or (0,)))
    return side.call(DescribeProducersRequest(topics=[asked]), 0)


def test_what_readers_see(both: Both, new_name: Names) -> None:
    """Records, markers, the last stable offset and the list of the aborted; offsets by isolation."""
    id, topic = new_name("txn"), new_name("topic")

    def offsets(side: Side) -> Iterator[Plain]:
        for isolation in (0, 1):
            asked = ListOffsetsRequest.Topic
            wanted = [asked.Partition(partition_index=0, timestamp=at) for at in (-1,)]
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation, topics=[asked(name=topic, partitions=wanted)]
            )
            yield side.call(request, 9)

    def fetched(side: Side) -> Iterator[Plain]:
        for isolation in (0, 1):
            asked = FetchRequest.Topic
            wanted = asked.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                isolation_level=isolation,
                topics=[asked(topic=topic, topic_id=side.ids[topic], partitions=[wanted])],
            )
            answer = side.call(request, 16, blank=("records",))
            yield answer

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        one, other = Transactional(side, id).find().begin(), Transactional(side, f"{id}-2").find().begin()
        for at, commit in enumerate((True, False, False, True)):
            one.produce(topic, value=b"one %d" % at)
            other.produce(topic, value=b"other %d" % at)
            yield from offsets(side)
            yield one.ended(commit)
            yield from fetched(side)
            yield other.ended(not commit)
            yield from offsets(side)
            yield from fetched(side)
        yield describe_producers(side, topic)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(WriteTxnMarkersRequest))
def test_write_markers(both: Both, new_name: Names, version: int) -> None:
    """As an admin who aborts a transaction that hangs, and some who should not."""
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        one = Transactional(side, id).find().begin().begin()
        one.produce(topic)

        def marker(*where: tuple[str, list[int]], epoch: int, commit: bool = False, **fields: int) -> Plain:
            entry = WriteTxnMarkersRequest.WritableTxnMarker
            topics = [entry.WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in where]
            wanted = entry(
                **{
                    "producer_id": one.producer_id,
                    "producer_epoch": epoch,
                    "transaction_result": commit,
                    "topics": topics,
                    "coordinator_epoch": 3,
                    **fields,
                }
            )
            return side.call(WriteTxnMarkersRequest(markers=[wanted]), version)

        yield marker((topic, [0]), epoch=one.epoch - 1)
        yield marker((topic, [7]), (f"{topic}-missing", [0]), epoch=one.epoch)
        yield marker((topic, [0]), epoch=one.epoch, transaction_version=2)
        yield describe_producers(side, topic, 0, 1)
        yield marker((topic, [0, 1]), epoch=one.epoch + 1)
        yield describe_producers(side, topic, 0, 1)
        yield marker((topic, [0]), epoch=one.epoch + 1, coordinator_epoch=1)
        yield marker((topic, [0]), epoch=one.epoch + 1, commit=True)
        yield marker((topic, [0]), epoch=one.epoch + 1, transaction_version=2)
        yield side.call(WriteTxnMarkersRequest(markers=[]), version)
        yield one.describe()

    both.same(script)


def test_describe(both: Both, new_name: Names) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        one = Transactional(side, id).find().begin()
        yield side.call(DescribeTransactionsRequest(transactional_ids=["", f"{id}-unknown", id, id]), 0)
        yield side.call(DescribeTransactionsRequest(transactional_ids=[]), 0)
        one.add(topic, 2, 0)
        yield one.describe()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(ListTransactionsRequest))
def test_list(both: Both, new_name: Names, version: int) -> None:
    id, topic = new_name("txn"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic)
        idle = Transactional(side, f"{id}-idle").find().begin()
        busy = Transactional(side, f"{id}-busy").find().begin()
        done = Transactional(side, f"{id}-done").find().begin()
        busy.add(topic, 0)
        done.produce(topic)
        done.ended()

        def listed(states: tuple[str, ...] = (), ids: tuple[int, ...] = (), **fields: object) -> Plain:
            request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(ids), **fields)
            answer = side.call(request, version)
            ours = [each for each in answer["transaction_states"] if each["transactional_id"].startswith(f"{id}-")]
            return answer | {"transaction_states": ours}

        yield listed()
        yield listed(("Ongoing",))
        yield listed(("Empty", "CompleteCommit"))
        yield listed(("Ongoing", "Nonsense", "empty", "Dead"))
        yield listed(("Nonsense",))
        yield listed(ids=(idle.producer_id, done.producer_id))
        yield listed(("Ongoing",), (idle.producer_id,))
        yield listed(ids=(-7,))
        if version >= 1:
            yield listed(duration_filter=0)
            yield listed(duration_filter=3_600_000)
            yield listed(duration_filter=-2)
        if version >= 2:
            for pattern in (f"{id}-.*", f"{id}", ".*-(idle|busy)", "", *ODD_PATTERNS):
                yield listed(transactional_id_pattern=pattern)

    both.same(script)


def batches(side: Side, topic: str, partition: int) -> Iterator[tuple[memoryview, BatchHeader]]:
    """The whole partition, as whoever may read everything gets it."""
    asked = FetchRequest.Topic
    offset = 0
    while True:
        wanted = asked.Partition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[asked(topic=topic, partitions=[wanted])])
        answer = side.answer(request, 12)
        assert isinstance(answer, FetchResponse)
        data = memoryview(bytes(answer.responses[0].partitions[0].records or b""))
        if not data:
            return
        for at, header in headers(data):
            yield data[at : at + header.size_bytes], header
            offset = header.next_offset


def test_journal_and_markers(both: Both, new_name: Names) -> None:
    """Record for record what Kafka writes, so that its tools read it and its brokers can take over."""
    id, topic, group = new_name("txn"), new_name("topic"), new_name("group")
    types = types_of(transaction_state)

    def journal(side: Side) -> Iterator[Plain]:
        for batch, header in batches(side, "__transaction_state", java_abs(java_hash(id)) % 50):
            for entry in entries_of(batch, header, types):
                assert isinstance(entry, Entry)
                if entry.key.transactional_id != id:
                    continue
                times = ("transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms")
                value = side.plain(entry.value, entry.version, times)
                for name in ("previous_producer_id", "next_producer_id"):
                    value[name] = "ID" if value[name] >= 0 else value[name]
                for each in value["transaction_partitions"] or ():
                    each["partition_ids"].sort()
                started = entry.value.transaction_start_timestamp_ms
                yield entry.version, started if started < 0 else "TIME", value

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        one = Transactional(side, id).find().begin()
        one.produce(topic, 0)
        one.produce(topic, 1)
        one.ended()
        one.produce(topic, 0)
        one.ended(False)
        one.ended(False)  # of nothing
        one.produce(topic, 1)
        two = Transactional(side, id).begin()  # aborts what is open
        two.add(topic, 0, 1)
        two.produce(topic, 1, version=11)
        two.ended(version=4)
        two.add_offsets(group)
        two.ended(False, version=3)
        two.init(producer_id=two.producer_id, producer_epoch=two.epoch)
        yield from journal(side)
        for partition in (0, 1):
            for batch, header in batches(side, topic, partition):
                marker = read_marker(batch) if header.is_control else None
                yield header.base_offset, header.producer_epoch, header.base_sequence, header.attributes, marker

    answers = both.same(script)
    assert len(answers) > 20
