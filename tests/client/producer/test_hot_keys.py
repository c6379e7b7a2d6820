"""Salted hot keys: found within bounds, spread evenly, and in order again behind the merge."""

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import WAIT_S

from ottla import Producer, ProducerOptions, RangeReader, SaltedKeys, Span, merge_salted
from ottla.client.admin import Admin
from ottla.client.consumer.salted_merge import SaltedMerge
from ottla.client.producer.hot_keys import SALT_HEADER, Salt, Salter, SpaceSaving
from ottla.client.producer.partitioner import partition_of_key
from ottla.model.ids import TopicPartition
from ottla.records.record import Headers

_names = (f"salted-{n}" for n in itertools.count())


class Read(NamedTuple):
    """A record as a consumer sees it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    headers: Headers
    value: int


def salter(seed: int = 1, **settings: object) -> Salter:
    return Salter(SaltedKeys(**settings), random.Random(seed))  # type: ignore[arg-type]


# --- finding them -----------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([b"%d" % n for n in range(12)])), st.integers(1, 8))
def test_the_sketch_never_promises_too_much(items: list[bytes], counters: int) -> None:
    sketch = SpaceSaving(counters)
    true: Counter[bytes] = Counter()
    for item in items:
        true[item] += 1
        assert 1 <= sketch.add(item) <= true[item]
    assert sketch.total == len(items)
    assert len(sketch._counts) <= counters
    for item, count in true.items():
        if count > len(items) / counters:
            kept, error = sketch._counts[item]
            assert kept - error <= count <= kept, "a frequent item cannot hide"


def test_a_hot_key_is_found_and_stays() -> None:
    rng = random.Random(3)
    salted = salter(detect=0.1, shards=4, counters=32, window=1_000)
    for _ in range(2_000):
        salted.place("t", b"hot" if rng.random() < 0.3 else b"cold-%d" % rng.randrange(5_000), 12)
    assert salted.hot_keys == {b"hot": 4}
    for _ in range(5_000):
        salted.place("t", b"cold-%d" % rng.randrange(5_000), 12)
    assert salted.hot_keys == {b"hot": 4}, "to turn back would mix up its order"


def test_the_first_records_say_nothing() -> None:
    salted = salter(detect=0.1, window=1_000)
    assert all(salted.place("t", b"only", 12) is None for _ in range(499))
    assert salted.place("t", b"only", 12) is not None


@pytest.mark.parametrize(
    "settings", [{"shards": 0}, {"hot": {b"k": 100_000}}, {"detect": 0.001}, {"detect": 2.0}, {"counters": 0}]
)
def test_settings_that_make_no_sense(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"shards|share|watched"):
        SaltedKeys(**settings)  # type: ignore[arg-type]


# --- spreading them ---------------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=8), st.integers(1, 40), st.integers(1, 40))
def test_a_hot_key_is_spread_evenly(key: bytes, shards: int, partitions: int) -> None:
    salted = salter(hot={key: shards})
    places = [salted.place("t", key, partitions) for _ in range(2 * shards * partitions)]
    chosen = [place[0] for place in places if place is not None]
    assert chosen[0] == partition_of_key(key, partitions), "shard 0 is where the key always was"
    counts = Counter(chosen)
    assert len(counts) == min(shards, partitions)
    assert max(counts.values()) - min(counts.values()) <= max(counts.values()) // min(shards, partitions) + 1
    assert salted.place("t", key + b"x", partitions) is None


def test_the_header_is_read_as_written() -> None:
    salt = Salt(2**64 - 1, 7, 3, 4)
    assert Salt.decode(salt.encode()) == salt
    assert Salt.decode(None) is None
    assert Salt.decode(b"short") is None
    assert Salt.decode(Salt(1, 7, 2, 4).encode()) is None, "7 mod 4 is not 2"


# --- and in order again -----------------------------------------------------------------------------------------


def written(keys: list[bytes], partitions: int, salted: Salter) -> dict[int, list[Read]]:
    logs: dict[int, list[Read]] = defaultdict(list)
    for value, key in enumerate(keys):
        place = salted.place("t", key, partitions)
        partition, headers = partition_of_key(key, partitions), ()
        if place is not None:
            partition, headers = place[0], ((SALT_HEADER, place[1].encode()),)  # type: ignore[assignment]
        logs[partition].append(Read("t", partition, len(logs[partition]), key, headers, value))
    return logs


def interleaved(logs: dict[int, list[Read]], rng: random.Random) -> list[Read]:
    queues = [list(reversed(log)) for _, log in sorted(logs.items())]
    found = []
    while queues := [queue for queue in queues if queue]:
        found.append(rng.choice(queues).pop())
    return found


def by_key(records: list[Read]) -> dict[bytes | None, list[int]]:
    found: dict[bytes | None, list[int]] = defaultdict(list)
    for record in records:
        found[record.key].append(record.value)
    return found


@given(st.lists(st.sampled_from([b"a", b"b", b"hot"]), max_size=80), st.integers(1, 9), st.randoms())
def test_the_merge_restores_the_order_of_every_key(keys: list[bytes], partitions: int, rng: random.Random) -> None:
    salted = salter(hot={b"hot": 4}, detect=0.4, shards=3, counters=4, window=20)
    records = interleaved(written(keys, partitions, salted), rng)
    merge: SaltedMerge[Read] = SaltedMerge()
    found = [each for record in records for each in merge.push(record)]
    assert merge.held == 0 and merge.gaps == 0 and merge.flush() == []
    assert sorted(found) == sorted(records)
    assert by_key(found) == {key: [n for n, each in enumerate(keys) if each == key] for key in set(keys)}


@given(st.integers(0, 60), st.integers(1, 6), st.randoms())
def test_reading_may_begin_in_the_middle(skipped: int, partitions: int, rng: random.Random) -> None:
    keys = [b"hot"] * 100
    logs = written(keys, partitions, salter(hot={b"hot": partitions}))
    later = {partition: [each for each in log if each.value >= skipped] for partition, log in logs.items()}
    merge: SaltedMerge[Read] = SaltedMerge()
    found = [each for record in interleaved(later, rng) for each in merge.push(record)]
    assert [each.value for each in found] == list(range(skipped, 100))


def test_a_missing_record_delays_no_longer_than_the_bound() -> None:
    records = [each for log in written([b"hot"] * 40, 4, salter(hot={b"hot": 4})).values() for each in log]
    records = sorted((each for each in records if each.value != 5), key=lambda each: each.value)
    merge: SaltedMerge[Read] = SaltedMerge(held_max=10)
    found = []
    for record in records:
        found += merge.push(record)
        assert merge.held <= 10
        if record.value == 15:
            assert merge.held_offsets() == {
                TopicPartition("t", each.partition): each.offset for each in records if each.value in (6, 7, 8, 9)
            }
    assert [each.value for each in found] == [each for each in range(40) if each != 5]
    assert merge.gaps == 1


def test_a_record_read_twice_goes_through() -> None:
    records = written([b"hot"] * 3, 1, salter(hot={b"hot": 1}))[0]
    merge: SaltedMerge[Read] = SaltedMerge()
    assert [merge.push(each) for each in records] == [[each] for each in records]
    assert merge.push(records[0]) == [records[0]]


def test_records_of_one_number_are_all_handed_on() -> None:
    """Somebody made two records of each one, and passed its headers on."""
    read = [each for log in written([b"hot"] * 40, 4, salter(hot={b"hot": 4})).values() for each in log]
    doubled = [each._replace(offset=2 * each.offset + n, value=2 * each.value + n) for each in read for n in (0, 1)]
    merge: SaltedMerge[Read] = SaltedMerge(held_max=len(doubled))
    found, most = [], 0
    for record in doubled:  # one partition after the other
        found += merge.push(record)
        most = max(most, merge.held)
    assert sorted(each.value for each in found) == list(range(80))
    assert most > 40 and merge.held == 0 == merge.gaps
    evens = [each.value for each in found if each.value % 2 == 0]
    assert evens == sorted(evens), "each of the two streams is in order"


def test_a_record_read_twice_while_it_is_held_is_held_once() -> None:
    first, second, third = written([b"hot"] * 3, 1, salter(hot={b"hot": 1}))[0]
    merge: SaltedMerge[Read] = SaltedMerge()
    assert merge.push(first) == [first]
    assert merge.push(third) == merge.push(third) == [] and merge.held == 1
    assert merge.push(second) == [second, third]


def test_sources_are_forgotten_in_time() -> None:
    merge: SaltedMerge[Read] = SaltedMerge(sources_max=2)
    for seed in range(5):
        late = written([b"hot"] * 2, 2, salter(seed, hot={b"hot": 2}))
        last = max((log[-1] for log in late.values()), key=lambda each: each.value)
        found = merge.push(last)
        assert len(found) == (1 if seed >= 2 else 0), "what is forgotten is handed on first"
    assert len(merge._streams) == 2


# --- with brokers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broker", ["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def test_over_a_broker(request: pytest.FixtureRequest, broker: str) -> None:
    bootstrap = str(request.getfixturevalue("ottla_broker" if broker == "ottla" else "real_kafka").bootstrap)
    name = f"{next(_names)}-{broker}"

    async def main() -> None:
        async with asyncio.timeout(WAIT_S), Admin(bootstrap) as admin:
            await admin.topics.create(name, 6)
            keys = SaltedKeys(detect=0.2, shards=3, window=200)
            async with Producer(bootstrap, ProducerOptions(salted_keys=keys)) as producer:
                for n in range(1_000):
                    await producer.post(name, b"%d" % n, b"hot" if n % 2 else b"cold-%d" % n)
            async with RangeReader(admin.cluster, [Span(name, index) for index in range(6)]) as reader:
                found = [(each.partition, each.key, each.value) async for each in merge_salted(reader)]
        hot = [(partition, int(value or b"")) for partition, key, value in found if key == b"hot"]
        assert [value for _, value in hot] == list(range(1, 1_000, 2))
        assert len({partition for partition, _ in hot}) == 3

    asyncio.run(main())


def test_a_failed_record_begins_a_new_source() -> None:
    first, second = (salter(hot={b"k": 2}) for _ in range(2))
    before = first.place("t", b"k", 4)
    assert before is not None and before == second.place("t", b"k", 4), "the same seed, the same source"
    first.restart()
    after = first.place("t", b"k", 4)
    assert after is not None and after[1].number == 0 and after[1].source != before[1].source


def test_merging_a_stream() -> None:
    logs = written([b"hot"] * 6, 3, salter(hot={b"hot": 3}))
    late = logs[max(logs)]
    late.pop()  # never arrives: the end of the stream hands on what waits for it

    async def stream() -> AsyncIterator[Read]:
        for record in interleaved(logs, random.Random(1)):
            yield record

    async def main() -> list[int]:
        return [record.value async for record in merge_salted(stream())]

    found = asyncio.run(main())
    assert found == sorted(found) and len(found) == 5


def test_a_consumer_commits_nothing_that_the_merge_holds() -> None:
    """What was read and not handed on, or is in the caller's hands, is not committed."""
    logs = written([b"hot"] * 6, 3, salter(hot={b"hot": 3}))
    everything = [each for log in logs.values() for each in log]

    class Source:
        """A consumer, as far as the merge knows; what comes last is what all others wait for."""

        def hold_back(self, held: Callable[[], Mapping[TopicPartition, int]]) -> None:
            self.held = held

        async def __aiter__(self) -> AsyncIterator[Read]:
            for record in sorted(everything, key=lambda each: (each.value % 3 == 0, each.offset)):
                yield record

    async def main() -> None:
        source, handed = Source(), list[Read]()
        async for record in merge_salted(source):
            handed.append(record)
            unhandled = [each for each in everything if each not in handed[:-1]]
            for place, offset in source.held().items():
                assert offset <= min(each.offset for each in unhandled if each.partition == place.partition)
            assert record.partition in {place.partition for place in source.held()}
        assert len(handed) == 6 and source.held() == {}

    asyncio.run(main())
