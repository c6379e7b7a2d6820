"""Queries as consumer groups: after every micro-batch, the offsets that it has read are committed under the query's
group.

    ottla group describe spark-revenue        # lag in records and in seconds

Rules:
- The end offsets of the batch that has just finished are committed, never more; also of the last batch of an
  `availableNow` run. When a query starts, the end offsets of the last finished batch in its checkpoint are committed,
  so that its lag is known while the first batch of this run is still running. Spark itself continues from its
  checkpoint and never reads the offsets of the group.
- The group is the source's `kafka.group.id`, else `spark-` and the query's name, else `spark-` and the query's id.
- Only sources of the format `ottla` are committed here. For sources of Spark's own Kafka connector the broker does it.
- The commits of one run are in order: the commit of a batch waits until the offsets from the checkpoint are committed.
- If the broker cannot be reached, a warning is logged and nothing else happens: the next batch commits again.
"""

import atexit
import contextlib
import json
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.security.security import Security
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.spark.kafka_settings import parse_kafka_settings
from ottla.spark.profile_option import with_profile
from ottla.spark.runtime.shared_environment import settle_environment
from ottla.spark.service_addresses import bootstrap_of, security_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

log = logging.getLogger(__name__)

GROUP_PREFIX = "spark-"
_FAILURES = (ClientError, ApiError, OSError, ValueError)
# Spark's name for the stream of any source written in Python.
_PYTHON_SOURCE = "PythonMicroBatchStream"
# How long a look at a query's plan may take.
_LEARN_S = 10.0


class CommittedSource(NamedTuple):
    """How a query reads one of its sources, as far as commits need it. `group` None means the group named after the
    query.
    """

    bootstrap: str
    group: str | None
    security: Security | None = None


class Commit(NamedTuple):
    """The offsets that one source has read, and the cluster and group to commit them to."""

    bootstrap: str
    group: str
    offsets: Mapping[TopicPartition, int]
    security: Security | None = None


def group_of(name: str | None, query_id: object, given: str | None = None) -> str:
    """The consumer group of a query."""
    return given or f"{GROUP_PREFIX}{name or query_id}"


def commits(
    progress: "StreamingQueryProgress", sources: Iterable[CommittedSource | None], default_bootstrap: str
) -> list[Commit]:
    """The commits after a batch. `sources` are in the order of the progress report's own; if they are not known, the
    defaults apply.
    """
    known = list(sources)
    found = []
    for index, told in enumerate(progress.sources):
        source = known[index] if index < len(known) else None
        if source is None:
            if known or _PYTHON_SOURCE not in told.description:
                continue  # another kind of source
            options = {"kafka.bootstrap.servers": default_bootstrap, **security_options(default_bootstrap)}
            source = CommittedSource(default_bootstrap, None, parse_kafka_settings(options).security)
        offsets = read_offsets(told.endOffset)
        if offsets:
            group = group_of(progress.name, progress.id, source.group)
            found.append(Commit(source.bootstrap, group, offsets, source.security))
    return found


def commits_at_start(
    name: str | None, query_id: object, offsets: Iterable[str | None], sources: Iterable[CommittedSource | None]
) -> list[Commit]:
    """The commits when a query starts. `offsets` are those of its last finished batch, in the order of its sources."""
    return [
        Commit(source.bootstrap, group_of(name, query_id, source.group), found, source.security)
        for text, source in zip(offsets, sources, strict=False)
        if source is not None and (found := read_offsets(text))
    ]


def read_offsets(text: str | None) -> dict[TopicPartition, int]:
    """Parse `{"topic": {"0": 123}}`; empty if the text is anything else."""
    try:
        told = json.loads(text or "null")
    except ValueError:
        return {}
    if not isinstance(told, dict) or not all(isinstance(each, dict) for each in told.values()):
        return {}
    return {
        TopicPartition(topic, int(index)): offset
        for topic, places in told.items()
        for index, offset in places.items()
        if index.isdecimal() and isinstance(offset, int)
    }


class _Run:
    """One run of a query. `storing` is held during a commit, so that there is one at a time."""

    def __init__(self) -> None:
        self.sources: list[CommittedSource | None] = []
        self.is_learned = threading.Event()
        self.storing = threading.Lock()
        self.is_past_start = False  # it has finished a batch, or ended: offsets from its checkpoint are old


class ProgressCommitter(StreamingQueryListener):
    """Listens to the queries of one session and commits their offsets. `close` closes its connections."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._clients: dict[tuple[str, Security | None], Blocking] = {}
        self._runs: dict[str, _Run] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        # At the start, because a query may be gone when its last report comes; in a thread, because Spark waits for
        # this call.
        run = self._runs[str(event.runId)] = _Run()
        threading.Thread(target=self._begin, args=(event.name, str(event.id), run), daemon=True).start()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.commit(event.progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        run = self._runs.pop(str(event.runId), None)
        if run is not None:
            run.is_past_start = True  # another run of the query may have committed newer offsets already

    def commit(self, progress: "StreamingQueryProgress") -> None:
        """Commit the offsets that a batch has read; failures are logged."""
        with self._failures_logged(progress.name or progress.id):
            run = self._known(progress)
            default = bootstrap_of(self._session) if not run.sources else ""
            run.is_past_start = True
            with run.storing:
                self._store(commits(progress, run.sources, default))

    def sources_of(self, run: object) -> list[CommittedSource | None]:
        """The sources of a run, as far as they are known now; empty with Spark Connect, where plans cannot be
        inspected.
        """
        known = self._runs.get(str(run))
        return [] if known is None else known.sources

    @contextlib.contextmanager
    def _failures_logged(self, query: object) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            log.warning("what query %s has read could not be committed: %s", query, error)

    def _store(self, found: Iterable[Commit]) -> None:
        for commit in found:
            client = self._client(commit.bootstrap, commit.security)
            if client is not None:
                client.admin.groups.set_offsets(commit.group, commit.offsets)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            with contextlib.suppress(*_FAILURES):
                client.close(discard=True)

    def _client(self, bootstrap: str, security: Security | None) -> Blocking | None:
        with self._lock:
            if self._is_closed:
                return None
            key = bootstrap, security
            if key not in self._clients:
                addresses = parse_bootstrap(bootstrap)
                options = ClientOptions(addresses, client_id="ottla-spark-progress", security=security)
                self._clients[key] = Blocking(options)
            return self._clients[key]

    def _known(self, progress: "StreamingQueryProgress") -> _Run:
        """The run of a report, with its sources if they can be found out."""
        run = self._runs.get(str(progress.runId))
        if run is None:  # it was started before this listener was added
            run = self._runs[str(progress.runId)] = _Run()
            self._learn(str(progress.id), run)
        run.is_learned.wait(_LEARN_S)
        return run

    def _begin(self, name: str | None, query_id: str, run: _Run) -> None:
        """After the start of a query: find out its sources, and commit the offsets that its checkpoint has for them."""
        self._learn(query_id, run)
        offsets: list[str | None] = []
        with contextlib.suppress(Exception):  # Spark may be ending, or store this in another way
            offsets = finished_offsets(self._session, query_id)
        with self._failures_logged(name or query_id), run.storing:
            if not run.is_past_start:
                self._store(commits_at_start(name, query_id, offsets, run.sources))

    def _learn(self, query_id: str, run: _Run) -> None:
        with contextlib.suppress(Exception):  # Spark may be ending; without sources the session's settings apply
            run.sources = planned_sources(self._session, query_id)
        run.is_learned.set()


def planned_sources(session: "SparkSession", query_id: str) -> list[CommittedSource | None]:
    """The sources of a running query in the order of its progress reports; None for sources other than `ottla`."""
    execution = _execution(session, query_id)
    if execution is None:
        return []
    leaves = execution.analyzedPlan().collectLeaves()
    found: list[CommittedSource | None] = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if not leaf.isStreaming():
            continue
        options = _options_of(leaf)
        found.append(
            None if options is None else _committed({str(name): str(options.get(name)) for name in options.keySet()})
        )
    return found


def _committed(options: Mapping[str, str]) -> CommittedSource:
    settings = parse_kafka_settings(with_profile(options))
    return CommittedSource(settings.bootstrap, settings.get("group.id"), settings.security)


def finished_offsets(session: "SparkSession", query_id: str) -> list[str | None]:
    """The end offsets of the last finished batch of a query according to its checkpoint, for each source in the order
    of its progress reports; empty if no batch is finished.
    """
    execution = _execution(session, query_id)
    if execution is None:
        return []
    batch = execution.commitLog().getLatestBatchId()
    written = None if batch.isEmpty() else execution.offsetLog().get(batch.get())
    if written is None or written.isEmpty():
        return []
    offsets = written.get().offsets()
    found = [offsets.apply(index) for index in range(offsets.size())]
    return [None if each.isEmpty() else each.get().json() for each in found]


def _execution(session: "SparkSession", query_id: str) -> Any:
    """Spark's own object for a query; None if the driver is not in this process or the query does not run any more."""
    query: Any = session.streams.get(query_id) if hasattr(session, "_jsparkSession") else None
    wrapper = getattr(query, "_jsq", None)
    return None if wrapper is None else wrapper.streamingQuery()


def _options_of(leaf: Any) -> Any:
    """The options of a stream that the data source `ottla` reads; None for others."""
    if leaf.getClass().getSimpleName() != "StreamingRelationV2":
        return None
    return leaf.extraOptions() if leaf.sourceName().lower() == "ottla" else None


_watching: "WeakKeyDictionary[SparkSession, ProgressCommitter]" = WeakKeyDictionary()


def watch(session: "SparkSession") -> ProgressCommitter:
    """Commit offsets for all queries of this session from now on; calling it again changes nothing."""
    found = _watching.get(session)
    if found is None:
        settle_environment(session)
        found = _watching[session] = ProgressCommitter(session)
        session.streams.addListener(found)
        atexit.register(found.close)
    return found


def groups_of(session: "SparkSession", name: str | None, query_id: object, run: object) -> set[str]:
    """The groups under which a run of a query commits."""
    watching = _watching.get(session)
    sources = watching.sources_of(run) if watching is not None else []
    return {group_of(name, query_id, each.group) for each in sources if each is not None} or {group_of(name, query_id)}


def unwatch(session: "SparkSession") -> None:
    """Stop committing offsets for the queries of this session."""
    found = _watching.pop(session, None)
    if found is not None:
        with contextlib.suppress(Exception):  # the session may be gone already
            session.streams.removeListener(found)
        found.close()
        atexit.unregister(found.close)
