"""Build a loaded pipeline in a session: call its functions, make and analyse the DataFrames. No query is started."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.spark.pipelines.definition import Definition, PipelineError
from ottla.spark.pipelines.load import Pipeline, at_fault
from ottla.spark.service_addresses import Replay, noted, replaying
from ottla.spark.streams.outputs import Output, to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Built(NamedTuple):
    """A query that can be started, and the topics that it and its streams read."""

    query: Definition
    output: Output
    reads: tuple[str, ...]


class BuildOutcome(NamedTuple):
    """The queries of a pipeline that could be built, and the errors of the rest."""

    built: list[Built]
    errors: list[PipelineError]


def build(pipeline: Pipeline, spark: "SparkSession", replay: Replay | None = None) -> list[Built]:
    """Build all queries. Raises PipelineError with the line at fault."""
    token = replaying.set(replay)
    try:
        found = attempt(pipeline, spark)
    finally:
        replaying.reset(token)
    if found.errors:
        raise found.errors[0]
    return found.built


def attempt(pipeline: Pipeline, spark: "SparkSession") -> BuildOutcome:
    """Build every stream and query separately, so that an error in one does not hide errors in others."""
    return _Building(pipeline, spark).all()


class _Building:
    def __init__(self, pipeline: Pipeline, spark: "SparkSession") -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._streams = {each.name: each for each in pipeline.streams}
        self._frames: dict[str, Any] = {"spark": spark}
        self._reads: dict[str, list[str]] = {}
        self._broken: dict[str, PipelineError] = {}  # by stream; a stream that needs a broken one gets the same error

    def all(self) -> BuildOutcome:
        errors: list[PipelineError] = []
        built: list[Built] = []
        for made in (*self._pipeline.streams, *self._pipeline.queries):
            try:
                if made.kind == "stream":
                    self._frame(made)
                else:
                    built.append(self._query(made))
            except PipelineError as error:
                if error not in errors:
                    errors.append(error)
        return BuildOutcome(built, errors)

    def _frame(self, made: Definition) -> Any:
        if made.name in self._broken:
            raise self._broken[made.name]
        if made.name not in self._frames:
            try:
                self._frames[made.name], self._reads[made.name] = self._stream(made)
            except PipelineError as error:
                self._broken[made.name] = error
                raise
        return self._frames[made.name]

    def _stream(self, made: Definition) -> tuple[Any, list[str]]:
        found, reads = self._call(made)
        if not _is_frame(found):
            raise made.error(f"a stream is a DataFrame, not {type(found).__name__}")
        found.createOrReplaceTempView(made.name)
        return found, reads

    def _query(self, made: Definition) -> Built:
        found, reads = self._call(made)
        if _is_frame(found):
            if made.output is None:
                raise made.error("say where it goes: output='TOPIC', or return to(...), to_parquet(...), to_delta(...)")
            try:
                found = to(found, made.output, key=made.key, mode=made.mode or "append")
            except Exception as error:
                raise at_fault(error, made.file, made.line, f"{made.name}: ") from error
        elif isinstance(found, Output):
            if made.output is not None or made.key is not None:
                raise made.error("what it returns says where it goes already: leave out output and key")
            if made.mode is not None:
                found = replace(found, mode=made.mode)
        else:
            raise made.error(f"a query returns a DataFrame, an output or a SELECT, not {type(found).__name__}")
        return Built(made, found, tuple(reads))

    def _call(self, made: Definition) -> tuple[Any, list[str]]:
        arguments = {name: self._frame(self._streams[name]) for name in made.needs if name in self._streams}
        if "spark" in made.needs and "spark" not in arguments:
            arguments["spark"] = self._spark
        reads: list[str] = []
        for name in made.needs:
            reads += [each for each in self._reads.get(name, []) if each not in reads]
        token = noted.set(reads)
        try:
            self._check_views(made.select)
            found = made.build(**arguments)
            if isinstance(found, str):
                self._check_views(found)
                # SQL names its views in its text, not in parameters: count the topics of all streams.
                reads += [each for those in self._reads.values() for each in those if each not in reads]
                found = self._spark.sql(found)
            if _is_frame(found):
                found.schema  # noqa: B018 (through Connect, this is where Spark analyses it)
        except PipelineError:
            raise
        except Exception as error:
            raise at_fault(error, made.file, made.line, f"{made.name}: ") from error
        finally:
            noted.reset(token)
        return found, reads

    def _check_views(self, select: str) -> None:
        """Raise the error of a broken stream that this SQL names, because that stream has no view."""
        for name, error in self._broken.items():
            if re.search(rf"\b{re.escape(name)}\b", select):
                raise error


def _is_frame(found: object) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(found, DataFrame)
