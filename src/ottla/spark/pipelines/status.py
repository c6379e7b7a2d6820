"""The published status of pipelines, in the compacted topic `_ottla_pipelines`. This module needs neither Spark nor
Java.

Records, as JSON: key NAME has the status of the pipeline's latest run; key NAME/claim has the run that claimed the
name; key NAME/stop has the run that is to stop; key NAME/restart has the run that is to start its queries again.

Rules:
- A run writes its status when it changes and every `beat_ms`. A run whose status says that it is live, but is older
  than `LOST_BEATS` beats, counts as `lost`: its driver is gone. That compares the clocks of two machines, so they
  should not be far apart.
- A stop or restart command names its run, so that an old command does not stop the next run.
- Of two runs under one name the one that claimed it last goes on; the other reads that claim, stops, and writes nothing
  more.
"""

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from types import UnionType
from typing import Any, NamedTuple

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.topic_settings import CLEANUP_POLICY

TOPIC = "_ottla_pipelines"
BEAT_MS = 5_000
LOST_BEATS = 4
LIVE = ("starting", "running", "restarting", "waiting", "stopping")
_STOP = "/stop"
_CLAIM = "/claim"
_RESTART = "/restart"
_TEXTS = ("name", "run", "state", "file", "host", "spark", "checkpoint")
_NUMBERS = ("updated_ms", "started_ms", "beat_ms", "pid", "generation", "restarts", "last_error_ms", "restarted_ms")
_REASONS = ("error", "last_error")


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """The latest run of a pipeline. `queries` are figures from `figures.figures_of`."""

    name: str
    run: str
    state: str
    file: str = ""
    host: str = ""
    pid: int = 0
    spark: str = ""
    checkpoint: str = ""
    # The number of replays so far; each uses new checkpoints.
    generation: int = 0
    started_ms: int = 0
    beat_ms: int = BEAT_MS
    updated_ms: int = 0
    error: str | None = None
    # How often queries were restarted in this run, the last error that caused a restart, and when.
    restarts: int = 0
    last_error: str | None = None
    last_error_ms: int = 0
    # When the queries were last started again because somebody asked for it.
    restarted_ms: int = 0
    queries: list[dict[str, Any]] = field(default_factory=list)
    # The topics that each query writes, by its name in the figures.
    writes: dict[str, list[str]] = field(default_factory=dict)
    # The last batch whose late records were sent, by the checkpoint of the query.
    late: dict[str, int] = field(default_factory=dict)

    def seen_at(self, now_ms: int) -> "PipelineStatus":
        """The status at this time: `lost` if the run has not written for too long."""
        if self.state in LIVE and now_ms - self.updated_ms > LOST_BEATS * self.beat_ms:
            return replace(self, state="lost")
        return self

    @property
    def is_dead_here(self) -> bool:
        """Whether the run's driver was a process of this machine that does not exist any more."""
        if self.host != socket.gethostname() or self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


class RunNotice(NamedTuple):
    """What a run reads on the board: that it is to stop, that it is to start its queries again, or that another run has
    claimed its name, and where that one runs.
    """

    stop: bool = False
    replaced_by: str | None = None
    restart: bool = False


class Board:
    """Access to the status topic through one client."""

    def __init__(self, client: Blocking) -> None:
        self._client = client
        self._read_to = -1
        self._known: dict[str, PipelineStatus] = {}
        self._known_to = -1

    def ensure(self) -> None:
        """Create the topic if it is not there."""
        try:
            self._client.admin.topics.create(TOPIC, 1, configs={CLEANUP_POLICY.name: "compact"})
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def all(self, now_ms: int) -> dict[str, PipelineStatus]:
        """The status of all pipelines that were ever run, by name."""
        found: dict[str, PipelineStatus] = {}
        for key, value in self._records():
            _note(found, key, value)
        return _seen(found, now_ms)

    def latest(self, now_ms: int) -> dict[str, PipelineStatus]:
        """The same as `all`, for whoever asks again and again: reads only what was written since the last call."""
        if TOPIC not in self._client.admin.topics.names():
            self._known, self._known_to = {}, -1
            return {}
        start, end = self._client.admin.topics.bounds(TOPIC)[0]
        if not start <= self._known_to <= end:  # the first call, or the topic was made anew
            self._known, self._known_to = {}, start
        if self._known_to < end:
            for record in self._client.read(TOPIC, 0, start=self._known_to, end=end):
                if record.key is not None:
                    _note(self._known, record.key.decode("utf-8", "replace"), record.value)
        self._known_to = end
        return _seen(self._known, now_ms)

    def publish(self, status: PipelineStatus) -> None:
        self._client.send(TOPIC, json.dumps(asdict(status)).encode(), status.name.encode())

    def ask_to_stop(self, status: PipelineStatus) -> None:
        """Tell a run to stop after its running batches."""
        self._client.send(TOPIC, json.dumps({"run": status.run}).encode(), f"{status.name}{_STOP}".encode())

    def ask_to_restart(self, status: PipelineStatus) -> None:
        """Tell a run to start its queries again, after its running batches and from their checkpoints."""
        self._client.send(TOPIC, json.dumps({"run": status.run}).encode(), f"{status.name}{_RESTART}".encode())

    def claim(self, status: PipelineStatus) -> None:
        """Claim the name for this run. `listen` then reads the commands and claims that follow."""
        told = json.dumps({"run": status.run, "host": status.host, "pid": status.pid})
        made = self._client.send(TOPIC, told.encode(), f"{status.name}{_CLAIM}".encode())
        self._read_to = made.offset + 1

    def listen(self, name: str, run: str) -> RunNotice:
        """What was written for this run since the last call, or since `claim`. If reading fails, the next call reads
        the same again.
        """
        start, end = self._client.admin.topics.bounds(TOPIC)[0]
        begin = self._read_to if start <= self._read_to <= end else start  # the topic may have been made anew
        stop, replaced_by, restart = False, None, False
        if begin < end:
            for record in self._client.read(TOPIC, 0, start=begin, end=end):
                if record.key == f"{name}{_STOP}".encode() and record.value is not None:
                    stop |= _object(record.value).get("run") == run
                elif record.key == f"{name}{_RESTART}".encode() and record.value is not None:
                    restart |= _object(record.value).get("run") == run
                elif record.key == f"{name}{_CLAIM}".encode() and record.value is not None:
                    told = _object(record.value)
                    if isinstance(told.get("run"), str) and told["run"] != run:
                        replaced_by = f"{told.get('host')} (process {told.get('pid')})"
        self._read_to = end
        return RunNotice(stop, replaced_by, restart)

    def _records(self) -> Iterator[tuple[str, bytes | None]]:
        if TOPIC not in self._client.admin.topics.names():
            return
        for record in self._client.read(TOPIC, 0, start=EARLIEST, end=LATEST):
            if record.key is not None:
                yield record.key.decode("utf-8", "replace"), record.value


def _note(found: dict[str, PipelineStatus], key: str, value: bytes | None) -> None:
    """Take over a record of the topic."""
    if key.endswith((_STOP, _CLAIM, _RESTART)):
        return
    status = _status(value)
    if status is None:
        found.pop(key, None)
    else:
        found[key] = replace(status, name=key)


def _seen(found: dict[str, PipelineStatus], now_ms: int) -> dict[str, PipelineStatus]:
    return {name: found[name].seen_at(now_ms) for name in sorted(found)}


def _status(value: bytes | None) -> PipelineStatus | None:
    """The status in a record, also if an older or newer version wrote it: missing and unknown fields are ignored. None
    if the value is no status, because any client can write to the topic.
    """
    told = {} if value is None else _object(value)
    found = {each.name: told[each.name] for each in fields(PipelineStatus) if each.name in told}
    kinds: tuple[tuple[type | UnionType, tuple[str, ...]], ...] = (
        (str, _TEXTS),
        (int, _NUMBERS),
        (str | None, _REASONS),
        (list, ("queries",)),
        (dict, ("late", "writes")),
    )
    if not all(isinstance(found[name], kind) for kind, names in kinds for name in names if name in found):
        return None
    if not all(isinstance(each, dict) and isinstance(each.get("query"), str) for each in found.get("queries", ())):
        return None
    if not all(isinstance(topic, str) for each in found.get("writes", {}).values() for topic in _listed(each)):
        return None
    return PipelineStatus(**found) if {"name", "run", "state"} <= found.keys() else None


def _listed(value: object) -> list[object]:
    """The list; one with something that is no topic in place of what is no list."""
    return value if isinstance(value, list) else [None]


def _object(value: bytes) -> dict[str, Any]:
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
