"""Quorum: this node's replica of the metadata journal, run on the event loop.

It is the shell of `raft.node`: timers, connections and fsync are here, every decision is there.

Rules:
- The listener gets every committed record once, in order, after a snapshot if there is one. Many records are handed
  over in slices (ADR 0028). The start of this node's leadership is reported after them, the end of it at once.
- A record is committed when a majority has it on disk. A worker does the fsync; only while a node starts does a sole
  voter do everything in the calling thread: append, fsync, commit, deliver.
- State that consensus must remember (a vote, a truncation) is on disk before its effects are carried out. Events that
  come meanwhile wait: for consensus the call seems to have taken as long as the disk.
- A leader whose disk fails resigns: another node may have a disk that works.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.address import Address
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Control
from ottla.cluster.store import MetadataStore
from ottla.log.files.disk import StorageError
from ottla.model.errors import ApiError
from ottla.model.ids import LeaderEpoch
from ottla.raft import effects, events
from ottla.raft.journal import OffsetAndEpoch, ReplicaKey
from ottla.raft.node import JOURNAL_PAUSE_MS, RaftNode
from ottla.raft.replica_progress import ReplicaView, describe
from ottla.raft.voters import VoterSet
from ottla.server.loop.later import Answer, Later
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.quorum.delivery import CommitDelivery, QuorumListener
from ottla.server.quorum.flushing import Flushing
from ottla.server.quorum.not_controller import NotController
from ottla.server.quorum.sending import Sending
from ottla.server.quorum.settings import bootstrap_servers, own_endpoints, raft_config, static_voters
from ottla.server.settings.configs import Configs
from ottla.server.storage.identity import Identity
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.wire.messages.cluster.update_features import UpdateFeaturesResponse

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound=Response)


class Quorum:
    """Use `Quorum.open`, then `start`."""

    def __init__(
        self, node: RaftNode, store: MetadataStore, runtime: Runtime, peers: Peers, listener: QuorumListener
    ) -> None:
        self.node = node
        self.store = store
        self._runtime = runtime
        self._loop = runtime.loop
        self._listener = listener
        self._is_started = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0  # when the timer fires
        self._stopping = False
        self.failure: StorageError | None = None  # the last error of the disk
        self._is_serving = False
        self._held: list[effects.Effect] | None = None  # effects that wait until the decision is on disk
        self._events: deque[events.Event] = deque()  # events that came meanwhile
        self._sending = Sending(runtime.loop, peers, self._step)
        self._flushing = Flushing(runtime.loop, store, runtime.executor, self._step)
        self._delivery = CommitDelivery(store, listener)
        self._delivering: Iterator[None] | None = None  # the delivery under way, in slices
        self._to_lead: effects.Lead | None = None  # to be reported when everything is delivered
        self._do: dict[type, Callable[[Any], object]] = {
            effects.Send: self._sending.send,
            effects.Reply: _reply,
            effects.Flush: lambda _: self._flushing.request(),
            effects.Committed: lambda effect: self._deliver(effect.high_watermark),
            effects.LoadSnapshot: lambda effect: self._begin_anew(effect.snapshot),
            effects.Lead: self._lead,
            effects.Follow: self._follow,
            effects.DoubtChanged: self._doubt,
        }

    @classmethod
    def open(
        cls,
        identity: Identity,
        store: MetadataStore,
        configs: Configs,
        runtime: Runtime,
        peers: Peers,
        listener: QuorumListener,
    ) -> Quorum:
        """Read the journal; nothing is written, sent or reported before `start`."""
        store.load()
        for loss in store.losses:
            log.warning("the metadata had to do without something that was damaged: %s", loss)
        settings = configs.broker
        node = RaftNode(
            ReplicaKey(identity.node_id, identity.home_id),
            identity.cluster_id,
            store,
            static_voters(settings, identity.node_id),
            config=raft_config(settings),
            rng=runtime.rng,
            bootstrap=bootstrap_servers(settings),
            endpoints=own_endpoints(settings),
        )
        return cls(node, store, runtime, peers, listener)

    def start(self) -> None:
        """Deliver committed records and take part in the quorum; a sole voter leads when this returns."""
        self._is_started = True
        if self.store.latest_snapshot is not None:
            self._begin_anew(self.store.latest_snapshot)
        self._step(events.Start())

    def begin_to_serve(self) -> None:
        """End the start: from now on workers, if there are any, do every fsync."""
        self._flushing.begin_to_serve()
        self._is_serving = True

    async def stop(self) -> None:
        """Leave the quorum; a leader announces it first, so that another one is elected at once."""
        self._stopping = True
        if self._is_started:
            if self.is_leader and not self.is_alone:
                self._step(events.StopAsked())
                await self._sending.idle(self.node.config.request_timeout_ms)
            if self._timer is not None:
                self._timer.cancel()
        for _ in self._delivering or ():
            pass  # finish what has begun, such as the removal of a deleted topic's directories
        self._sending.close()
        await self._flushing.stop()

    # --- the state of the quorum

    @property
    def leader_id(self) -> int:
        """The id of the leader; -1 if unknown."""
        return self.node.leader_id

    @property
    def epoch(self) -> LeaderEpoch:
        return self.node.epoch

    @property
    def is_leader(self) -> bool:
        return self.node.is_leader

    @property
    def is_voter(self) -> bool:
        return self.node.is_voter

    @property
    def in_doubt(self) -> bool:
        """Whether this voter's vote does not count yet, because its disk was empty (ADR 0022)."""
        return self.node.is_voter and self.node.doubt is not None

    @property
    def is_alone(self) -> bool:
        """Whether this node is the sole voter, so that its own disk decides what is committed."""
        return self.node.voters.is_only(self.node.me)

    @property
    def is_in_place(self) -> bool:
        """Whether everything is done in the calling thread: while the node starts, or without workers."""
        return self._flushing.in_place

    @property
    def executor(self) -> Executor | None:
        """The worker threads, for work that must not block the loop."""
        return self._runtime.executor

    @property
    def commits_at_once(self) -> bool:
        """Whether an append is committed when it returns."""
        return self.is_alone and self._flushing.in_place

    @property
    def works_in_slices(self) -> bool:
        """Whether long work on the metadata is cut into slices, with other work in between."""
        return self._is_serving and not self.commits_at_once

    @property
    def high_watermark(self) -> int:
        return self.node.high_watermark

    @property
    def end_offset(self) -> int:
        return self.store.end_offset

    @property
    def voters(self) -> VoterSet:
        return self.node.voters

    @property
    def kraft_version(self) -> int:
        return self.node.history.kraft_version

    def leader_address(self) -> Address | None:
        """Return the address of the leader's controller listener."""
        found = self.node.leader_endpoint()
        return Address(found.host, found.port) if found is not None else None

    # --- operations of a leader

    def append(self, entries: Sequence[MetadataEntry]) -> int:
        """Write entries that take effect together; return the offset after them. StorageError: nothing was written."""
        if not self.is_leader:
            raise NotController("This node does not lead the metadata quorum.")
        start = self.store.end_offset
        try:
            self.store.write_entries(entries, self.epoch)
        except StorageError:
            if not self.commits_at_once:
                self._step(events.JournalFailed())
            raise
        end = self.store.end_offset
        if self.commits_at_once:
            self.store.sync(start)
        self._delivery.remember(entries, start, end, self.epoch, self._runtime.now_ms())
        self._step(events.JournalGrew())
        return end

    def flushed(self) -> Later[None]:
        """Return a `Later` that is set when everything in the log at this moment is on disk."""
        later: Later[None] = Later()
        if self._flushing.in_place:
            self.store.flush()
            later.set(None)
        elif self.store.flushed_offset >= self.store.end_offset:
            later.set(None)
        else:
            self._flushing.settle(lambda: later.set(None), flush=True)
        return later

    def writing_snapshot(
        self, entries: Iterable[MetadataEntry], offset: int, epoch: LeaderEpoch
    ) -> Iterator[Callable[[], None] | None]:
        """Write the committed state below `offset`, which must be on disk (`flushed`), step by step.

        Each callable that this yields has to be called, in any thread, before the next step.
        """
        return self.store.writing_snapshot(
            entries,
            OffsetAndEpoch(offset, epoch),
            last_timestamp=self._delivery.last_timestamp,
            quorum=[Control(*control) for control in self.node.history.controls_at(offset)],
        )

    @property
    def snapshot_due(self) -> bool:
        return self.store.snapshot_due

    @property
    def snapshot_offset(self) -> int:
        """The offset of the newest snapshot; 0 if there is none."""
        latest = self.store.latest_snapshot
        return latest.offset if latest is not None else 0

    def resign(self) -> None:
        """Resign as leader, because the state machine could not apply records that were appended."""
        self._step(events.JournalFailed())

    def next_slice(self, slice_: Callable[[], None]) -> None:
        """Call `slice_`, the next slice of long work on the metadata, when it is its turn."""
        self._runtime.slices.soon(slice_)

    # --- the version of the quorum

    def upgrade_refusal(self, level: int) -> str | None:
        """Return why kraft.version cannot become `level` now, or None."""
        from ottla.raft import upgrade  # seldom needed, and a start should be quick

        return upgrade.refusal(self.node, level)

    def upgrade(self, level: int) -> Later[UpdateFeaturesResponse]:
        """Raise kraft.version; the answer is set when that is committed or has failed."""
        later: Later[UpdateFeaturesResponse] = Later()
        self._step(events.UpgradeAsked(later, level))
        return later

    # --- requests

    def ask(self, request: Request[ResponseT]) -> Answer[ResponseT]:
        """Return the answer to a request of another node or of a tool."""
        later: Later[ResponseT] = Later()
        later.on_abandon = lambda: self._step(events.Abandoned(later))
        self._step(events.RequestReceived(later, request))
        return later.soonest()

    def describe(self) -> tuple[list[ReplicaView], list[ReplicaView]] | None:
        """Return voters and observers, with times of day; None if this node does not lead."""
        now_ms = self.clock_ms()
        found = describe(self.node, now_ms)
        if found is None:
            return None
        shift_ms = self._runtime.now_ms() - now_ms

        def shifted(view: ReplicaView) -> ReplicaView:
            fetched_ms, caught_up_ms = (at if at < 0 else at + shift_ms for at in (view.fetched_ms, view.caught_up_ms))
            return view._replace(fetched_ms=fetched_ms, caught_up_ms=caught_up_ms)

        voters, observers = found
        return [shifted(view) for view in voters], [shifted(view) for view in observers]

    # --- inside

    def _step(self, event: events.Event) -> None:
        if self._held is None:
            self._run(event)
        else:
            self._events.append(event)

    def _run(self, event: events.Event) -> None:
        assert self._is_started, "the quorum was not started"
        for each in (event, events.JournalFailed()):
            try:
                found = self.node.step(each, self.clock_ms())
                break
            except (StorageError, ApiError) as error:  # ApiError: damaged batches
                log.error("the metadata log cannot be written: %s", error)
                self.failure = error if isinstance(error, StorageError) else self.failure
        else:
            self._set_timer(self.clock_ms() + JOURNAL_PAUSE_MS)
            return
        if self.store.has_work:
            self._held = found
            self._flushing.settle(self._go_on)
        else:
            self._carry_out(found)

    def _go_on(self) -> None:
        """Carry out the held effects, because the decision is on disk, then handle the events that waited."""
        assert self._held is not None, "something waits for the disk"
        found, self._held = self._held, None
        self._carry_out(found)
        while self._events and self._held is None:
            self._run(self._events.popleft())

    def _carry_out(self, found: list[effects.Effect]) -> None:
        for effect in found:
            self._do[type(effect)](effect)
        self._set_timer()

    def clock_ms(self) -> int:
        """Return the loop's time, by which consensus and the controller measure; the time of day may jump."""
        return int(self._loop.time() * 1000)

    def _set_timer(self, deadline_ms: int | None = None) -> None:
        deadline_ms = self.node.deadline_ms if deadline_ms is None else deadline_ms
        if self._timer is not None:
            if deadline_ms is not None and deadline_ms >= self._timer_ms:
                return  # the timer fires early enough, and is set again then
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None and not self._stopping:
            self._timer_ms = deadline_ms
            # One millisecond more: rounding the loop's time down must not make the timer fire early.
            self._timer = self._loop.call_at((deadline_ms + 1) / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._step(events.Tick())

    def _begin_anew(self, snapshot: OffsetAndEpoch) -> None:
        self._delivery.begin_anew(snapshot)
        self._deliver(snapshot.offset)

    def _deliver(self, high_watermark: int) -> None:
        """Hand committed records to the listener, in slices once the node serves requests; after a read error, try
        again later.
        """
        self._delivery.committed_offset = max(self._delivery.committed_offset, high_watermark)
        if self._delivering is None:
            self._delivering = self._delivery.steps()
            self._deliver_some()

    def _deliver_some(self) -> None:
        try:
            for _ in self._delivering or ():
                if self.works_in_slices:
                    self.next_slice(self._deliver_some)
                    return
        except StorageError as error:
            log.error("the metadata log cannot be read: %s", error)
            self._loop.call_later(JOURNAL_PAUSE_MS / 1000, self._deliver_rest)
        except BaseException:
            self._delivering = None
            raise
        self._delivering = None
        to_lead, self._to_lead = self._to_lead, None
        if to_lead is not None:
            self._lead(to_lead)

    def _deliver_rest(self) -> None:
        if not self._stopping:
            self._deliver(self.node.high_watermark)

    def _lead(self, effect: effects.Lead) -> None:
        if self._delivering is not None:
            self._to_lead = effect
            return
        if self._delivery.next_offset < self.node.high_watermark:
            self._step(events.JournalFailed())  # a leader that lacks committed records must not decide
            return
        if not self.is_alone:
            log.info("this node leads the quorum in epoch %d", effect.epoch)
        self._listener.lead(effect.epoch)

    def _follow(self, effect: effects.Follow) -> None:
        if not self.is_alone:
            log.info("the quorum is led by node %d in epoch %d", effect.leader_id, effect.epoch)
        self._delivery.forget()
        self._to_lead = None
        self._listener.follow(effect.leader_id, effect.epoch)

    def _doubt(self, effect: effects.DoubtChanged) -> None:
        if effect.is_over:
            log.info("this node votes in the quorum from now on")
            return
        unheard = ", ".join(map(str, effect.unheard))
        if self.end_offset:
            log.warning(
                "no vote from this node: its disk was empty, and what it has fetched since may not be all that was "
                "committed. Bring the other controllers back; if they are lost, see docs/quorum.md"
            )
        else:
            log.warning(
                "no vote from this node: its disk is empty, perhaps because it lost one. It waits for a leader, or "
                "until all voters are up and empty, too (missing: %s). If they are lost, see docs/quorum.md",
                unheard,
            )


def _reply(effect: effects.Reply) -> None:
    assert isinstance(effect.token, Later), "requests are received with one"
    effect.token.set(effect.response)
