"""A loaded pipeline over a session: functions are called, DataFrames are made and analysed. Nothing is started."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.spark.outputs import Output, to
from ottla.spark.pipelines.definition import Definition, PipelineError
from ottla.spark.pipelines.load import Pipeline, at_fault
from ottla.spark.places import Replay, noted, replaying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Built(NamedTuple):
    """A query that can be started, and the topics that it and its streams read."""

    query: Definition
    output: Output
    reads: tuple[str, ...]


def build(pipeline: Pipeline, spark: "SparkSession", replay: Replay | None = None) -> list[Built]:
    """Raises PipelineError, with the line at fault."""
    token = replaying.set(replay)
    try:
        return _Building(pipeline, spark).all()
    finally:
        replaying.reset(token)


class _Building:
    def __init__(self, pipeline: Pipeline, spark: "SparkSession") -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._streams = {each.name: each for each in pipeline.streams}
        self._frames: dict[str, Any] = {"spark": spark}
        self._reads: dict[str, list[str]] = {}

    def all(self) -> list[Built]:
        for made in self._pipeline.streams:
            self._frame(made)
        return [self._query(made) for made in self._pipeline.queries]

    def _frame(self, made: Definition) -> Any:
        if made.name not in self._frames:
            found, reads = self._call(made)
            if not _is_frame(found):
                raise made.error(f"a stream is a DataFrame, not {type(found).__name__}")
            found.createOrReplaceTempView(made.name)
            self._frames[made.name] = found
            self._reads[made.name] = reads
        return self._frames[made.name]

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
            found = made.build(**arguments)
            if isinstance(found, str):
                # Views are named in SQL, not in parameters: who knows which.
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


def _is_frame(found: object) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(found, DataFrame)
