"""Fetcher: follows all partitions that one other broker leads.

One fetch at a time carries all of them (`session`). Its response is applied partition by partition, each with one
write, and the next fetch is sent in the same turn of the loop: its offsets are the acknowledgement that the leader
waits for. If records must be synced before they count, the next fetch is sent after the sync.

Rules:
- While a fetch waits at the leader, a second one may be sent to add partitions: so after an election a new partition
  does not wait for the end of a long poll. Records that the second response repeats are ignored.
- An error of one partition pauses that partition, for longer each time. The others go on.
- An error of the connection pauses the fetcher, briefly at first. A change in the metadata ends either pause.
- Only connecting is a task: a response is handled where it arrives, before anything else is received.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial

from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError, NotConnected
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.replication import (
    REPLICA_FETCH_BACKOFF_MS,
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
    REPLICA_SOCKET_TIMEOUT_MS,
)
from ottla.replica.partition import Partition
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.replication.cutting import cut_long, cut_now, is_long_cut
from ottla.server.replication.out_of_range import RangeFinder
from ottla.server.replication.quotas import FollowerQuota
from ottla.server.replication.session import Followed, Key, SessionWithLeader
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

log = logging.getLogger(__name__)

_PartitionData = FetchResponse.FetchableTopicResponse.PartitionData

PURPOSE = "replica"
_FIRST_VERSION_BY_ID = FetchRequest.Topic.since("topic_id")
_ANEW = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
# Errors that end by themselves when the leader and this node have both applied the last election.
_PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class Fetcher:
    def __init__(
        self,
        leader_id: int,
        runtime: Runtime,
        configs: Configs,
        storage: Storage,
        peers: Peers,
        metadata: MetadataHost,
        quota: FollowerQuota,
        address_of: Callable[[int], Address | None],
        leader_lost: Callable[[int], None],
    ) -> None:
        """`address_of` returns a broker's address; `leader_lost` is called when the connection to the leader broke."""
        self.leader_id = leader_id
        self.session = SessionWithLeader()
        self._loop = runtime.loop
        self._runtime = runtime
        self._configs = configs
        self._storage = storage
        self._partitions = storage.partitions
        self._peers = peers
        self._metadata = metadata
        self._ranges = RangeFinder(runtime, configs, storage, peers)
        self._leader_lost = leader_lost
        self._quota = quota
        self._address_of = address_of
        self._connection: Connection | None = None
        self._version = 0
        self._in_flight = 0
        self._valid_from = 0  # responses to requests with lower numbers are ignored
        self._connecting: asyncio.Task[None] | None = None
        self._failures = 0
        self._retry: asyncio.TimerHandle | None = None
        self._resting: dict[Key, tuple[Followed, asyncio.TimerHandle | asyncio.Task[None]]] = {}
        self._syncing = 0  # the number of syncs that the next fetch waits for
        self._pump_due = False
        self._closed = False

    def __len__(self) -> int:
        return len(self.session.followed) + len(self._resting)

    # --- for Replication

    def follows(self, key: Key, partition: Partition) -> bool:
        """Return whether this very partition is followed in its current leader epoch."""
        resting = self._resting.get(key)
        followed = self.session.followed.get(key) if resting is None else resting[0]
        return followed is not None and followed.partition is partition and followed.epoch == partition.leader_epoch

    def add(self, key: Key, partition: Partition) -> None:
        """Follow this partition, or follow it anew (in another leader epoch)."""
        self._wake_up(key)
        self._join(Followed(key, partition))
        self.hurry()

    def remove(self, key: Key) -> None:
        self._wake_up(key)
        self.session.remove(key)

    def hurry(self) -> None:
        """End the pause of the fetcher, because the metadata changed."""
        self._failures = 0
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._soon()

    async def close(self) -> None:
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        tasks = [self._connecting] if self._connecting is not None else []
        for key in tuple(self._resting):
            waiting = self._wake_up(key)
            if isinstance(waiting, asyncio.Task):
                tasks.append(waiting)
        self.session.followed.clear()
        self._connection = None
        if self._connecting is not None:
            self._connecting.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- sending

    def _soon(self) -> None:
        """Send a fetch in the next turn of the loop, so that an election of many partitions leads to one request."""
        if not self._pump_due:
            self._pump_due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_due = False
        session = self.session
        if self._closed or self._syncing or self._retry is not None or not session.followed:
            return
        if self._connection is None:
            if self._connecting is None:
                self._connecting = self._loop.create_task(self._connect())
        elif self._in_flight == 0 or (self._in_flight == 1 and session.id and session.is_urgent):
            try:
                self._send(self._connection)
            except ClientError as error:
                self._lost(error)

    async def _connect(self) -> None:
        settings = self._configs.broker
        try:
            address = self._address_of(self.leader_id)
            if address is None:
                raise NotConnected(f"broker {self.leader_id} has no address")
            timeout_ms = settings[REPLICA_SOCKET_TIMEOUT_MS]
            connection = await self._peers.connect(address, timeout_ms=timeout_ms, purpose=PURPOSE)
            self._version = connection.version_of(FetchRequest)
            if self._version < _FIRST_VERSION_BY_ID:
                raise NotConnected(f"{address} does not know topics by their ids")
        except Exception as error:
            self._connecting = None
            if not isinstance(error, ClientError):  # a bug must not end replication for good
                log.exception("broker %d cannot be followed", self.leader_id)
                error = NotConnected("an error of our own")
            self._lost(error)
            return
        self._connecting = None
        connection.read_in_place()
        self._connection = connection
        self._in_flight = 0
        self._valid_from = self.session.number
        self._pump()

    def _send(self, connection: Connection) -> None:
        settings = self._configs.broker
        session = self.session
        opening = session.id == 0
        request = session.request(settings[REPLICA_FETCH_MAX_BYTES])
        # The first fetch only opens the session and does not wait: within a session, a second fetch can add partitions.
        request.max_wait_ms = 0 if opening and not session.is_refused else settings[REPLICA_FETCH_WAIT_MAX_MS]
        request.min_bytes = settings[REPLICA_FETCH_MIN_BYTES]
        request.max_bytes = settings[REPLICA_FETCH_RESPONSE_MAX_BYTES]
        node_id = self._metadata.node_id
        request.replica_id = request.replica_state.replica_id = node_id
        request.replica_state.replica_epoch = self._metadata.state.broker_epoch(node_id)
        timeout_ms = request.max_wait_ms + settings[REPLICA_SOCKET_TIMEOUT_MS]
        then = partial(self._answered, connection, session.number - 1, opening)
        connection.call_now(request, then, version=self._version, timeout_ms=timeout_ms)
        self._in_flight += 1

    def _lost(self, error: ClientError) -> None:
        log.log(
            logging.DEBUG if self._failures else logging.INFO, "following broker %d rests: %s", self.leader_id, error
        )
        self._connection = None
        self.session.reset()
        self._rest()
        self._leader_lost(self.leader_id)

    def _rest(self) -> None:
        if self._closed or self._retry is not None:
            return
        self._retry = self._loop.call_later(self._pause_ms(self._failures) / 1000, self._tried_again)
        self._failures += 1

    def _tried_again(self) -> None:
        self._retry = None
        self._pump()

    def _pause_ms(self, failures: int) -> int:
        longest = self._configs.broker[REPLICA_FETCH_BACKOFF_MS]
        return min(limits.REPLICA_RETRY_MS << min(failures, 10), longest)

    # --- answers

    def _answered(self, connection: Connection, number: int, opening: bool, found: FetchResponse | ClientError) -> None:
        """Handle a response; its records are valid until this returns."""
        if isinstance(found, ClientError):
            # Not inline: the caller is in the middle of closing the connection.
            self._loop.call_soon(self._broke, connection, found)
            return
        if connection is not self._connection or self._closed:
            return
        self._in_flight -= 1
        try:
            if number >= self._valid_from:
                self._take_answer(found, number, opening)
        except Exception:
            log.exception("the answer of broker %d could not be taken", self.leader_id)
            self._begin_anew()
            self._rest()
        self._pump()

    def _broke(self, connection: Connection, error: ClientError) -> None:
        if connection is self._connection and not self._closed:
            self._lost(error)

    def _take_answer(self, response: FetchResponse, number: int, opening: bool) -> None:
        session = self.session
        if response.error_code:
            self._begin_anew()
            if response.error_code not in _ANEW:
                log.warning("broker %d refuses a fetch: %s", self.leader_id, _name(response.error_code))
                self._rest()
            return
        self._failures = 0
        if opening:
            session.opened(response.session_id)
        followed_by_key = session.followed
        for topic in response.responses:
            topic_id = topic.topic_id
            for data in topic.partitions:
                followed = followed_by_key.get(Key(topic_id, data.partition_index))
                if followed is None or number < followed.since:
                    continue
                if followed.is_answered_by(number):
                    self._take(followed, data)
                else:
                    session.moved(followed)

    def _begin_anew(self) -> None:
        """Start with a full fetch; responses that are still to come are ignored."""
        self._valid_from = self.session.number
        self.session.reset()

    def _take(self, followed: Followed, data: _PartitionData) -> None:
        """Apply the response for one partition; an error here does not affect the other partitions."""
        partition = followed.partition
        if not self._partitions.holds(partition):
            self.session.remove(followed.key)  # the directory of the partition failed
            return
        try:
            if data.error_code:
                self._refused(followed, data.error_code)
                return
            if data.diverging_epoch.epoch >= 0 and not self._cut(followed, data.diverging_epoch):
                return
            self._apply(followed, data)
            followed.failures = 0
            if partition.log.unwritten:
                self._wait_for_disk(followed)
                return
            self.session.moved(followed)
            if self._quota.holds_back(partition.topic, partition.index):
                self._put_off(followed, self._quota.pause_ms())
        except StorageError as error:
            self._partitions.storage_failed(partition, error)
            self._fail(followed, str(error))
        except ApiError as error:
            self._fail(followed, error.message or error.code.name)
        except Exception:
            log.exception("%s cannot be followed", partition.name)
            self._fail(followed, "an error of our own")

    def _apply(self, followed: Followed, data: _PartitionData) -> None:
        partition = followed.partition
        if data.diverging_epoch.epoch >= 0:
            return  # the log was truncated; such a response has no records
        now_ms = self._runtime.now_ms()
        taken_bytes = partition.append_fetched(
            data.records or b"", data.high_watermark, data.log_start_offset, now_ms=now_ms
        )
        if taken_bytes:
            self._quota.received(partition.topic, partition.index, taken_bytes)
            if partition.needs_sync and not partition.log.unwritten:
                self._sync(followed)

    def _cut(self, followed: Followed, diverging: _PartitionData.EpochEndOffset) -> bool:
        """Truncate the log where the leader says; False if that takes so long that it is done in the background."""
        partition, epoch, end_offset = followed.partition, diverging.epoch, diverging.end_offset
        log.info("%s diverges at epoch %d, offset %d", partition.name, epoch, end_offset)
        if is_long_cut(partition, epoch, end_offset):
            self._set_aside(followed, partial(cut_long, partition, epoch, end_offset, self._runtime, self._storage))
            return False
        cut_now(partition, epoch, end_offset, self._runtime, self._storage)
        return True

    # --- syncing

    def _sync(self, followed: Followed) -> None:
        """Sync before the next fetch (`ottla.fsync.before.ack`), which tells the leader that the records are here."""
        partition = followed.partition
        self._storage.syncer.request(partition)
        if partition.fetch_offset is None and self._partitions.holds(partition):
            self._syncing += 1
            timeout_ms = self._configs.broker[REPLICA_SOCKET_TIMEOUT_MS]
            self._storage.waiters.watch(Later(), (partition,), partial(self._synced, followed), timeout_ms)

    def _synced(self, followed: Followed, changed: object) -> bool:
        """End the wait for a sync. A failed sync has truncated the log: then the wait ends, too."""
        partition = followed.partition
        if changed is not None and partition.fetch_offset is None and self._partitions.holds(partition):
            return False
        self._syncing -= 1
        if self.session.followed.get(followed.key) is followed:
            self.session.moved(followed)
        if not self._syncing:
            self._pump()
        return True

    def _wait_for_disk(self, followed: Followed) -> None:
        """Pause this partition until its records are written, because the leader must not count them before; others go
        on.
        """
        if followed.partition.needs_sync:
            self._storage.syncer.request(followed.partition)
        self._set_aside(followed, partial(self._written, followed.partition))

    async def _written(self, partition: Partition) -> None:
        done = self._loop.create_future()

        def settle(changed: object) -> bool:
            waits = changed is not None and partition.fetch_offset is None and self._partitions.holds(partition)
            if not waits and not done.done():
                done.set_result(None)
            return not waits

        if not settle(partition):
            timeout_ms = self._configs.broker[REPLICA_SOCKET_TIMEOUT_MS]
            self._storage.waiters.watch(Later(), (partition,), settle, timeout_ms)
        await done

    # --- errors of a partition

    def _refused(self, followed: Followed, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            address = self._address_of(self.leader_id)
            self._set_aside(followed, partial(self._ranges.move_end, followed.partition, address))
            return
        self._fail(followed, _name(code), quietly=code in _PASSING)

    def _fail(self, followed: Followed, why: str, *, quietly: bool = False) -> None:
        level = logging.DEBUG if quietly or followed.failures else logging.WARNING
        log.log(level, "%s cannot be fetched from broker %d: %s", followed.partition.name, self.leader_id, why)
        pause_ms = self._pause_ms(followed.failures)
        followed.failures += 1
        self._put_off(followed, pause_ms)

    def _put_off(self, followed: Followed, pause_ms: int) -> None:
        self.session.remove(followed.key)
        timer = self._loop.call_later(pause_ms / 1000, self._again, followed)
        self._resting[followed.key] = followed, timer

    def _again(self, followed: Followed) -> None:
        self._resting.pop(followed.key, None)
        if not self._closed and self._partitions.holds(followed.partition):
            self._join(followed)
            self._soon()

    def _join(self, followed: Followed) -> None:
        """Fetch the partition from now on, from its log end offset, which tells the leader what is here."""
        if followed.partition.log.unwritten:
            self._wait_for_disk(followed)  # it was the leader until now, and its disk is slow
        else:
            self.session.add(followed)

    def _wake_up(self, key: Key) -> asyncio.TimerHandle | asyncio.Task[None] | None:
        found = self._resting.pop(key, None)
        if found is None:
            return None
        found[1].cancel()
        return found[1]

    def _set_aside(self, followed: Followed, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Pause the partition until `work` on it is done."""
        self.session.remove(followed.key)
        self._resting[followed.key] = followed, self._loop.create_task(self._go_on_after(followed, work))

    async def _go_on_after(self, followed: Followed, work: Callable[[], Coroutine[object, object, None]]) -> None:
        partition = followed.partition
        try:
            await work()
        except (ClientError, ApiError) as error:
            why = str(error)
        except StorageError as error:
            self._partitions.storage_failed(partition, error)
            why = str(error)
        except Exception:
            log.exception("%s cannot be followed", partition.name)
            why = "an error of our own"
        else:
            self._again(followed)
            return
        self._resting.pop(followed.key, None)
        self._fail(followed, why)


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
