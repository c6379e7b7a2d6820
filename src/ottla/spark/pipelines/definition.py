"""The definitions in a pipeline file: named streams, and the queries to run.

    from ottla.spark import pipeline, topic, tumbling

    @pipeline.stream
    def orders():
        return topic("orders", value="avro").select("value.*")

    @pipeline.query(output="revenue", mode="update", key="shop")
    def revenue(orders):
        return tumbling(orders, "1 minute", "shop", time="at", grace="10 seconds").sum("amount")

Rules:
- Decorating does not change the function: a test can call it with its own DataFrames.
- A function is called with the objects that its parameters name: streams of the same file, and `spark`, the session.
- No decorated function is called when the file is loaded.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ottla.spark.options import nearest
from ottla.spark.streams.late import LateTo

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__ottla_pipeline__"


class PipelineError(Exception):
    """Something is wrong with a pipeline; the message begins with file and line where they are known. `passes`: another
    try may succeed a moment later.
    """

    def __init__(self, message: str, file: str | None = None, line: int | None = None, *, passes: bool = False) -> None:
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(place + " ".join(message.split()))
        self.line = line
        self.passes = passes


@dataclass(frozen=True, slots=True)
class Definition:
    """One stream or one query. Only queries have output settings. `build` returns a DataFrame, an Output or SQL.
    `select` is the SQL that `build` runs by itself.
    """

    kind: str
    name: str
    build: Callable[..., Any]
    needs: tuple[str, ...]
    file: str
    line: int
    output: str | None = None
    mode: str | None = None
    key: str | None = None
    trigger: str | None = None
    checkpoint: str | None = None
    late: LateTo | None = None
    restarts: int | None = None
    select: str = ""

    def error(self, message: str, line: int | None = None) -> PipelineError:
        return PipelineError(f"{self.name}: {message}", self.file, line or self.line)


class _Decorators:
    """The decorators `pipeline.stream` and `pipeline.query`."""

    @overload
    def stream(self, given: F) -> F: ...

    @overload
    def stream(self, given: str | None = None) -> Callable[[F], F]: ...

    def stream(self, given: "F | str | None" = None) -> Any:
        """Define a named DataFrame. Queries and other streams of the file use it as a parameter of that name, or in
        SQL.
        """
        if callable(given):
            return _mark(given, kind="stream", name=given.__name__)
        return lambda function: _mark(function, kind="stream", name=given or function.__name__)

    @overload
    def query(self, given: F) -> F: ...

    @overload
    def query(
        self,
        given: str | None = None,
        *,
        output: str | None = None,
        mode: str | None = None,
        key: str | None = None,
        trigger: str | None = None,
        checkpoint: str | None = None,
        late: LateTo | None = None,
        restarts: int | None = None,
    ) -> Callable[[F], F]: ...

    def query(
        self,
        given: "F | str | None" = None,
        *,
        output: str | None = None,
        mode: str | None = None,
        key: str | None = None,
        trigger: str | None = None,
        checkpoint: str | None = None,
        late: LateTo | None = None,
        restarts: int | None = None,
        **unknown: object,
    ) -> Any:
        """Define a query that the pipeline runs. The function returns a DataFrame, which is written to the topic
        `output`; or an Output (`to`, `to_parquet`, `to_delta`, ...); or a SELECT over the streams, as text.

        `mode`: append, update or complete. `key`: the expression that becomes the key of records. `trigger`: the time
        between batches, such as "10 seconds". `checkpoint`: the query's directory; by default one below the pipeline's.
        `late`: where late records go (`late_to`). `restarts`: how often the query may be restarted within ten minutes
        after errors that may pass; by default the value of `ottla pipeline run --restarts`.
        """
        settings: dict[str, Any] = {
            "output": output,
            "mode": mode,
            "key": key,
            "trigger": trigger,
            "checkpoint": checkpoint,
            "late": late,
            "restarts": restarts,
        }
        for name in unknown:
            raise PipelineError(f"@pipeline.query has no setting {name!r}{nearest(name, settings)}")
        if callable(given):
            return _mark(given, kind="query", name=given.__name__, **settings)
        return lambda function: _mark(function, kind="query", name=given or function.__name__, **settings)


pipeline = _Decorators()


def _mark(function: F, *, kind: str, name: str, **settings: Any) -> F:
    code = inspect.unwrap(function).__code__
    needs = tuple(inspect.signature(function).parameters)
    made = Definition(kind, name, function, needs, code.co_filename, code.co_firstlineno, **settings)
    setattr(function, _MARK, made)
    return function


def definitions_in(namespace: dict[str, Any]) -> list[Definition]:
    """All decorated functions of a module, in the order of the file."""
    found = {
        id(made): made for each in namespace.values() if isinstance(made := getattr(each, _MARK, None), Definition)
    }
    return list(found.values())
