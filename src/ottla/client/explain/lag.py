"""Why a group is behind: verdicts from facts. Pure: facts in, verdicts out, the most urgent first.

A partition gets the first verdict that explains it by itself (no leader, records that are gone, an open transaction);
only what nothing else explains is the fault of its consumer. `hot_partition` and `throttled` say why a consumer is
slow, so they come in addition.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from statistics import median
from typing import NamedTuple

from ottla.client.explain.facts import GroupState, PartitionFacts, QuotaFact
from ottla.client.explain.words import places, plural, rate, some, span
from ottla.model.ids import TopicPartition

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady"})
# A partition is hot if it gets so many times the records of the median partition of its topic, and so much of all.
_HOT_FACTOR, _HOT_SHARE = 3.0, 0.5
# A consumer that commits from time to time keeps up while its lag is no more than what it reads in this time.
_COMMITS_S = 10.0
_THROTTLED_SHARE = 0.7  # of a quota
_FASTER = 1.05


class LagCause(Enum):
    """Why a group is behind, by the names that scripts see."""

    KEEPS_UP = "keeps_up"
    UNKNOWN = "unknown"
    TOPIC_DELETED = "topic_deleted"
    NO_LEADER = "no_leader"
    RECORDS_GONE = "records_gone"
    BEYOND_END = "beyond_end"
    NO_CONSUMER = "no_consumer"
    REBALANCING = "rebalancing"
    OPEN_TRANSACTION = "open_transaction"
    NOT_ASSIGNED = "not_assigned"
    STUCK_PARTITION = "stuck_partition"
    CONSUMER_STOPPED = "consumer_stopped"
    SLOW_CONSUMER = "slow_consumer"
    CATCHING_UP = "catching_up"
    HOT_PARTITION = "hot_partition"
    THROTTLED = "throttled"


class LagVerdict(NamedTuple):
    """One cause, with what shows it, and what to do about it: a command or a setting."""

    cause: LagCause
    summary: str
    partitions: tuple[TopicPartition, ...] = ()
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def explain_lag(group: GroupState) -> list[LagVerdict]:
    """Return why the group is behind, the most urgent cause first; KEEPS_UP if it is not."""
    left = [each for each in group.partitions if each.is_behind or not each.exists or not each.has_leader or each.error]
    left += [each for each in group.partitions if each not in left and _is_beyond(each)]
    found: list[LagVerdict] = []
    for judge in _JUDGES:
        explained: set[TopicPartition] = set()
        for verdict in judge(group, left):
            found.append(verdict)
            explained.update(verdict.partitions)
        left = [each for each in left if each.partition not in explained]
    found += [*_hot(group), *_throttled(group)]
    return found or [_keeps_up(group)]


def _keeps_up(group: GroupState) -> LagVerdict:
    lag = sum(each.lag for each in group.partitions)
    if not group.partitions:
        return LagVerdict(LagCause.KEEPS_UP, "the group has committed no offsets and reads no partitions")
    text = f"the group keeps up: {plural(lag, 'record')} behind in {plural(len(group.partitions), 'partition')}"
    silent = [each for each in group.partitions if each.owner is not None and each.committed is None]
    told = (f"nothing was committed yet for {places(_named(silent))}",) if silent else ()
    return LagVerdict(LagCause.KEEPS_UP, text, evidence=told)


_Judge = Callable[[GroupState, Sequence[PartitionFacts]], Iterable[LagVerdict]]


def _named(facts: Iterable[PartitionFacts]) -> tuple[TopicPartition, ...]:
    return tuple(each.partition for each in facts)


def _deleted(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    gone = [each for each in left if not each.exists]
    if gone:
        topics = sorted({each.partition.topic for each in gone})
        yield LagVerdict(
            LagCause.TOPIC_DELETED,
            f"{some(topics)}: the group has offsets for partitions that do not exist (any more)",
            _named(gone),
            (f"offsets are committed for {places(_named(gone))}",),
            tuple(f"ottla group delete-offsets {group.group_id} --topic {name}" for name in topics),
        )


def _leaderless(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    found = [each for each in left if not each.has_leader]
    if found:
        yield LagVerdict(
            LagCause.NO_LEADER,
            f"{places(_named(found))} cannot be read: no leader",
            _named(found),
            ("all brokers with a replica that is in sync are away",),
            ("start the missing brokers; ottla cluster status lists them",),
        )


def _unknown(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    found = [each for each in left if each.error]
    if found:
        errors = sorted({each.error for each in found})
        yield LagVerdict(
            LagCause.UNKNOWN,
            f"nothing can be said of {places(_named(found))}",
            _named(found),
            tuple(errors),
        )


def _is_beyond(facts: PartitionFacts) -> bool:
    return facts.committed is not None and facts.exists and facts.has_leader and facts.committed > facts.end


def _out_of_range(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    lost = [each for each in left if each.committed is not None and each.committed < each.start]
    if lost:
        count = sum(each.start - (each.committed or 0) for each in lost)
        yield LagVerdict(
            LagCause.RECORDS_GONE,
            f"{plural(count, 'record')} were deleted before the group read them",
            _named(lost),
            tuple(
                f"{places([each.partition])}: the group is at {each.committed}, the partition begins at {each.start}"
                for each in lost[:5]
            ),
            (
                "the members go on where auto.offset.reset says",
                "keep records longer: ottla config set topic "
                f"{lost[0].partition.topic} retention.ms=… (or retention.bytes)",
            ),
        )
    beyond = [each for each in left if _is_beyond(each)]
    if beyond:
        first = beyond[0]
        at = f"{first.partition.topic}:{first.partition.partition}"
        yield LagVerdict(
            LagCause.BEYOND_END,
            f"the group is beyond the end of {places(_named(beyond))}: the topic was created anew, or lost records",
            _named(beyond),
            (f"{places([first.partition])}: the group is at {first.committed}, the partition ends at {first.end}",),
            (f"ottla group reset-offsets {group.group_id} --topic {at} --to earliest --execute",),
        )


def _empty(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    if group.members or not left:
        return
    yield LagVerdict(
        LagCause.NO_CONSUMER,
        f"nobody reads: the group has no members, and {_behind(left)}",
        _named(left),
        (*_departures(group), *_waiting(left)),
        ("start a consumer of the group",),
    )


def _departures(group: GroupState) -> Iterator[str]:
    """Yield how the last members went, if the coordinator remembers."""
    for event in reversed(group.past.events if group.past is not None else ()):
        if event.kind in ("left", "timed_out"):
            ago = span(max(group.past.now_ms - event.at_ms, 0) / 1000) if group.past is not None else ""
            setting = f" ({event.setting}={event.setting_value})" if event.setting else ""
            how = "timed out" if event.kind == "timed_out" else "left"
            yield f"the last member, {event.client_id or event.member_id} on {event.host}, {how}{setting} {ago} ago"
            return


def _rebalancing(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    if group.state in REBALANCING and left:
        yield LagVerdict(
            LagCause.REBALANCING,
            f"the group is rebalancing now ({group.state}); {_behind(left)}",
            _named(left),
            tuple(_waiting(left)),
            ("ask again when it is Stable; the timeline below says who caused it",),
        )


def _transactions(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    held: dict[tuple[int, str | None], list[PartitionFacts]] = defaultdict(list)
    for each in left:
        if each.transaction is not None and each.is_stuck and _is_held(each):
            held[each.transaction.producer_id, each.transaction.transactional_id].append(each)
    for (producer_id, transactional_id), found in held.items():
        first = found[0].transaction
        assert first is not None, "it is held by a transaction"
        whose = f"transactional id {transactional_id}" if transactional_id else f"producer id {producer_id}"
        age = "" if first.open_ms is None else f", open for {span(first.open_ms / 1000)}"
        at = found[0].partition
        abort = (
            f"ottla txn abort {transactional_id}"
            if transactional_id
            else f"ottla txn abort --partition {at.topic}:{at.partition} --start-offset {first.start_offset}"
        )
        yield LagVerdict(
            LagCause.OPEN_TRANSACTION,
            f"an open transaction of {whose}{age} holds back {places(_named(found))}: consumers that read committed "
            "records wait for its end",
            _named(found),
            tuple(
                f"{places([each.partition])}: readable up to {each.stable_end}, written up to {each.end}; "
                f"producer id {producer_id} has been writing since offset "
                f"{each.transaction.start_offset if each.transaction else '?'}"
                for each in found[:5]
            ),
            (
                "let its producer commit or abort; a transaction ends by itself after transaction.timeout.ms",
                f"or end it: {abort}",
            ),
        )


def _is_held(facts: PartitionFacts) -> bool:
    """Whether at least half of the lag is behind the transaction, and the group has stopped there."""
    if facts.stable_end is None or facts.committed is None:
        return False
    held = facts.end - max(facts.stable_end, facts.committed)
    return not facts.consumed_per_s and held * 2 >= facts.lag


def _unassigned(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    if not any(each.partitions for each in group.members):
        return  # it is not known who reads what: a streams group, or an assignor of one's own
    found = [
        each
        for each in left
        if each.owner is None and not any(_reads(member.partitions, each) for member in group.members)
    ]
    if found:
        topics = some(sorted({each.partition.topic for each in found}))
        yield LagVerdict(
            LagCause.NOT_ASSIGNED,
            f"no member reads {places(_named(found))}",
            _named(found),
            (f"the group is {group.state} with {plural(len(group.members), 'member')}", *_waiting(found)),
            (
                f"let the members subscribe to {topics}; or, if it is not needed any more: "
                f"ottla group delete-offsets {group.group_id} --topic {found[0].partition.topic}",
            ),
        )


def _reads(partitions: Iterable[TopicPartition], facts: PartitionFacts) -> bool:
    return facts.partition in partitions


def _consumers(group: GroupState, left: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    """Judge the members that own what is left."""
    by_member: dict[str, list[PartitionFacts]] = defaultdict(list)
    for each in left:
        by_member[each.owner.member_id if each.owner is not None else ""].append(each)
    moving = {
        each.owner.member_id for each in group.partitions if each.owner is not None and (each.consumed_per_s or 0) > 0
    }
    for member_id, owned in by_member.items():
        still = [each for each in owned if each.consumed_per_s == 0]
        if still:
            yield _stuck(group, still) if member_id in moving else _stopped(group, still)
        yield from _speeds([each for each in owned if (each.consumed_per_s or 0) > 0])


def _who(facts: PartitionFacts) -> str:
    owner = facts.owner
    return "the consumer" if owner is None else f"member {owner.client_id or owner.member_id} on {_host(owner.host)}"


def _host(host: str) -> str:
    return host.removeprefix("/")


def _stopped(group: GroupState, still: Sequence[PartitionFacts]) -> LagVerdict:
    member = still[0].owner
    known = "" if member is None else f"member id {member.member_id}"
    return LagVerdict(
        LagCause.CONSUMER_STOPPED,
        f"{_who(still[0])} is there, but does not get on: nothing was committed in {span(group.window_s)}; "
        f"{_behind(still)}",
        _named(still),
        (*filter(None, [known]), *_waiting(still)),
        (
            "look at its log and its threads: it is paused, blocked in processing a record, or commits rarely",
            "a member that does not poll for max.poll.interval.ms leaves the group: lower it to notice sooner",
            "if it commits less often than that, sample for longer: --seconds 60",
        ),
    )


def _stuck(group: GroupState, still: Sequence[PartitionFacts]) -> LagVerdict:
    first = still[0]
    at = f"{first.partition.topic}:{first.partition.partition}"
    return LagVerdict(
        LagCause.STUCK_PARTITION,
        f"{_who(first)} gets on in its other partitions, but not in {places(_named(still))}",
        _named(still),
        tuple(f"{places([each.partition])} waits at offset {each.committed}" for each in still[:5]),
        (
            f"look at the record: ottla consume {first.partition.topic} --partition {first.partition.partition} "
            f"--from-offset {first.start if first.committed is None else first.committed} --max 1",
            f"or skip it: ottla group reset-offsets {group.group_id} --topic {at} --shift 1 --execute, "
            "while the group has no members",
        ),
    )


def _speeds(moving: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    slow = [each for each in moving if _is_slow(each)]
    if slow:
        produced, consumed = _sum(slow, "produced_per_s"), _sum(slow, "consumed_per_s")
        yield LagVerdict(
            LagCause.SLOW_CONSUMER,
            f"{_who(slow[0])} reads {rate(consumed)}, its producers write {rate(produced)}; {_behind(slow)}",
            _named(slow),
            tuple(_waiting(slow)),
            (
                "add members: a group can have as many as there are partitions (ottla topic hot shows how many help)",
                "or make processing faster: larger max.poll.records and fetch.min.bytes, less work per record",
            ),
        )
    catching = [each for each in moving if not _is_slow(each) and not _keeps_pace(each)]
    if catching:
        ahead = _sum(catching, "consumed_per_s") - _sum(catching, "produced_per_s")
        lag = sum(each.lag for each in catching)
        when = f"; at this rate in {span(lag / ahead)}" if ahead > 0 else ""
        yield LagVerdict(
            LagCause.CATCHING_UP,
            f"{_who(catching[0])} is catching up{when}: {_behind(catching)}",
            _named(catching),
            tuple(_waiting(catching)),
        )


def _is_slow(facts: PartitionFacts) -> bool:
    produced, consumed = facts.produced_per_s or 0.0, facts.consumed_per_s or 0.0
    return produced > consumed * _FASTER and not _keeps_pace(facts)


def _keeps_pace(facts: PartitionFacts) -> bool:
    return facts.lag <= (facts.consumed_per_s or 0.0) * _COMMITS_S


def _sum(facts: Iterable[PartitionFacts], field: str) -> float:
    return sum(getattr(each, field) or 0.0 for each in facts)


def _hot(group: GroupState) -> Iterator[LagVerdict]:
    topics: dict[str, list[PartitionFacts]] = defaultdict(list)
    for each in group.partitions:
        if each.produced_per_s is not None:
            topics[each.partition.topic].append(each)
    for name, found in topics.items():
        total = _sum(found, "produced_per_s")
        busiest = max(found, key=lambda each: each.produced_per_s or 0.0)
        others = [each.produced_per_s or 0.0 for each in found if each is not busiest]
        own = busiest.produced_per_s or 0.0
        if (
            not others
            or not own
            or not busiest.is_behind
            or own < _HOT_SHARE * total
            or own < _HOT_FACTOR * median(others)
        ):
            continue
        yield LagVerdict(
            LagCause.HOT_PARTITION,
            f"{places([busiest.partition])} gets {own / total:.0%} of the records of {name}",
            (busiest.partition,),
            (f"{rate(own)} there, {rate(median(others))} in the median of the other {len(others)}",),
            (
                f"find the keys: ottla topic hot {name}",
                "spread a hot key over partitions (SaltedKeys of our producer), or choose another key",
            ),
        )


def _throttled(group: GroupState) -> Iterator[LagVerdict]:
    for quota in group.quotas:
        owned = [
            each for each in group.partitions if each.owner is not None and each.owner.client_id == quota.client_id
        ]
        if any(each.is_behind for each in owned):
            yield from _near(quota, owned)


def _near(quota: QuotaFact, owned: Sequence[PartitionFacts]) -> Iterator[LagVerdict]:
    used = sum((each.consumed_per_s or 0.0) * (each.record_bytes or 0.0) for each in owned)
    if used < _THROTTLED_SHARE * quota.bytes_per_s:
        return
    yield LagVerdict(
        LagCause.THROTTLED,
        f"client id {quota.client_id} reads about as much as its quota allows: it is likely throttled",
        _named(each for each in owned if each.is_behind),
        (f"it reads some {used:,.0f} B/s; the quota is consumer_byte_rate={quota.bytes_per_s:,.0f} on each broker",),
        (f"ottla quota set {quota.whose} consumer_byte_rate=…",),
    )


def _behind(facts: Sequence[PartitionFacts]) -> str:
    lag = sum(each.lag for each in facts)
    return f"{plural(lag, 'record')} behind in {plural(len(facts), 'partition')}"


def _waiting(facts: Sequence[PartitionFacts]) -> Iterator[str]:
    """Yield for how long the oldest record has waited."""
    known = [each.seconds for each in facts if each.seconds]
    if known:
        yield f"the first record that was not read has waited for {span(max(known))}"


_JUDGES: tuple[_Judge, ...] = (
    _deleted,
    _leaderless,
    _unknown,
    _out_of_range,
    _empty,
    _rebalancing,
    _transactions,
    _unassigned,
    _consumers,
)
