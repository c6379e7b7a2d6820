"""A query over topics: `topic('orders')` becomes a view, and DuckDB runs the query.

Options of `topic()`: `format` (`auto`: typed if the registry has the subject, else text; `text`; `raw`), `key_format`
(the same for keys), `since` ("1h": only records of the last hour), `last` (only so many offsets of each partition).
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.offsets import EARLIEST, LATEST, Time, list_offsets
from ottla.client.options import ClientOptions, GivenSecurity
from ottla.client.registry import RegistryOptions
from ottla.client.security.registry_settings import RegistrySecurity
from ottla.model.durations import parse_duration_ms
from ottla.model.ids import TopicPartition
from ottla.sql.confined import NotReading, check_reads, confine
from ottla.sql.dataset import Extent, TopicDataset
from ottla.sql.payloads import PayloadColumns, Raw, TextColumns
from ottla.sql.rewrite import BadCall, TopicCall, rewrite

log = logging.getLogger(__name__)

_OPTIONS = ("format", "key_format", "since", "last")
# Reserved words of SQL that are names of columns here: DuckDB needs them in quotes.
_RESERVED = re.compile(r"\boffset\b", re.IGNORECASE)


class SqlError(ValueError):
    """The query cannot be run; the message is one sentence."""


class Subjects(Protocol):
    """The schemas of topics."""

    def payloads(self, subject: str) -> PayloadColumns | None: ...


class Sql:
    """A client of one cluster with its own DuckDB, for use in a `with` statement."""

    def __init__(
        self,
        bootstrap: str | ClientOptions,
        registry: str | RegistryOptions | None = None,
        warn: Callable[[str], None] = log.warning,
        *,
        security: GivenSecurity = None,
        registry_security: RegistrySecurity | Mapping[str, str] | None = None,
        is_confined: bool = False,
    ) -> None:
        """`warn` is called with a sentence if keys or values cannot be typed. Confined queries read topics, and
        nothing of this machine (see `confined`).
        """
        self._subjects: Subjects | None = None
        if registry is not None:
            from ottla.sql.typed import RegistrySubjects

            self._subjects = RegistrySubjects(registry, warn, registry_security)
        self._client = Blocking(bootstrap, security=security)
        self._duck = duckdb.connect(":memory:")
        self._duck.execute("SET TimeZone = 'UTC'")
        self._is_confined = is_confined
        if is_confined:
            confine(self._duck)
        self.datasets: list[TopicDataset] = []

    def __enter__(self) -> "Sql":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._duck.close()
        self._client.close(discard=True)

    def query(self, text: str) -> Any:
        """DuckDB's result: `fetchall()`, `arrow()`, `df()`, `description`. Raises SqlError."""
        try:
            rewritten, calls = rewrite(text)
        except BadCall as error:
            raise SqlError(str(error)) from None
        if self._is_confined:
            self._check(rewritten, text)
        self.datasets = []
        for call in calls:
            dataset = self._dataset(call)
            self.datasets.append(dataset)
            self._duck.register(call.view, dataset)
        try:
            return self._duck.execute(rewritten)
        except duckdb.Error as error:
            raise SqlError(_one_line(error, text)) from None

    @property
    def rows_read(self) -> int:
        """How many records the running query, or the last one, has read."""
        return sum(each.rows_read for each in self.datasets)

    def _check(self, rewritten: str, text: str) -> None:
        try:
            check_reads(self._duck, rewritten)
        except NotReading as error:
            raise SqlError(str(error)) from None
        except duckdb.Error as error:
            raise SqlError(_one_line(error, text)) from None

    def _dataset(self, call: TopicCall) -> TopicDataset:
        unknown = sorted(set(call.options) - set(_OPTIONS))
        if unknown:
            raise SqlError(f"topic() has no option {unknown[0]}: there are {', '.join(_OPTIONS)}")
        extent = self._extent(call)
        keys = self._payloads(f"{call.topic}-key", call.options.get("key_format", "auto"))
        values = self._payloads(f"{call.topic}-value", call.options.get("format", "auto"))
        return TopicDataset(self._client, call.topic, extent, keys, values)

    def _payloads(self, subject: str, chosen: str) -> PayloadColumns:
        if chosen == "raw":
            return Raw()
        if chosen not in ("auto", "text"):
            raise SqlError(f"format is auto, text or raw, not {chosen!r}")
        typed = self._subjects.payloads(subject) if chosen == "auto" and self._subjects is not None else None
        return typed or TextColumns()

    def _extent(self, call: TopicCall) -> Extent:
        info = self._client.run(self._client.cluster.topic(call.topic))
        parts = [TopicPartition(call.topic, each.index) for each in info.partitions]
        starts = self._offsets(parts, EARLIEST)
        ends = self._offsets(parts, LATEST)
        if "since" in call.options:
            try:
                since_ms = self._client.cluster.options.now_ms() - parse_duration_ms(call.options["since"])
            except ValueError as error:
                raise SqlError(f"since: {error}") from None
            # -1: no record is so late
            found = self._offsets(parts, Time(since_ms))
            starts = {part: ends[part] if found[part] < 0 else found[part] for part in parts}
        if "last" in call.options:
            if not call.options["last"].isdecimal():
                raise SqlError(f"last is a number of offsets, not {call.options['last']!r}")
            starts = {part: max(starts[part], ends[part] - int(call.options["last"])) for part in parts}
        return Extent({part.partition: (starts[part], ends[part]) for part in parts})

    def _offsets(self, parts: list[TopicPartition], time: Time) -> dict[TopicPartition, int]:
        found = self._client.run(list_offsets(self._client.cluster, dict.fromkeys(parts, time), read_committed=True))
        return {part: answer.offset for part, answer in found.items()}


def fetch_rows(result: Any, count: int) -> list[tuple[Any, ...]]:
    """Return the next rows of a result of `Sql.query`, at most `count`. Raises SqlError.

    DuckDB computes some rows only when they are fetched, so a cast of a bad value may fail here.
    """
    try:
        rows: list[tuple[Any, ...]] = result.fetchmany(count)
    except duckdb.Error as error:
        raise SqlError(_one_line(error)) from None
    return rows


def arrow_batches(result: Any, rows: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a result, and its rows in batches. Both raise SqlError."""

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (duckdb.Error, pa.ArrowException) as error:
            raise SqlError(_one_line(error)) from None

    try:
        reader = result.to_arrow_reader(rows)
    except duckdb.Error as error:
        raise SqlError(_one_line(error)) from None
    return reader.schema, batches()


def _one_line(error: Exception, text: str = "") -> str:
    message = str(error).split("\n\n")[0].replace("\n", " ")
    if isinstance(error, duckdb.ParserException) and _RESERVED.search(re.sub(r'"[^"]*"', "", text)):
        message += ' (offset is a word of SQL: as a column it is written "offset")'
    return message
