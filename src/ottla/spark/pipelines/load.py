"""Loading a pipeline file: Python with decorated functions, or SQL.

Rules:
- Every mistake that can be found without Spark is found here, and reported with its line.
- The functions of a Python file are pickled by value for the executors, which do not have that file.
"""

import difflib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from ottla.spark.pipelines.causes import cause_of
from ottla.spark.pipelines.definition import Definition, PipelineError, definitions_in
from ottla.spark.pipelines.statements import read_statements
from ottla.spark.streams.outputs import MODES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_GIVEN = ("spark",)
_NO_SESSION_YET = (
    "there is no Spark session yet when the file is loaded: do this inside of a stream's or query's function, and give "
    "the type of a function as an object, @F.udf(StringType()), not as text: "
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A loaded pipeline file."""

    name: str
    file: str
    streams: tuple[Definition, ...]
    queries: tuple[Definition, ...]

    def query_name(self, query: Definition) -> str:
        """The name of a query in Spark, unique among pipelines: its group, under which its lag is seen, is named after
        it.
        """
        return self.name if query.name == self.name else f"{self.name}-{query.name}"


def load(path: Path, name: str | None = None) -> Pipeline:
    """Load a file, check it and return the pipeline. Raises PipelineError."""
    file = str(path)
    if not path.is_file():
        raise PipelineError(f"there is no file {file}")
    if path.suffix == ".sql":
        found = read_statements(path.read_text(), file)
    elif path.suffix == ".py":
        found = [_shown(each, path) for each in definitions_in(vars(_module(path)))]
    else:
        raise PipelineError("a pipeline is a file that ends in .py or .sql", file)
    chosen = name or path.stem
    if not _NAME.fullmatch(chosen):
        raise PipelineError(f"{chosen!r} is no name for a pipeline: letters, digits, '-', '_' and '.'", file)
    loaded = Pipeline(
        chosen,
        file,
        tuple(each for each in found if each.kind == "stream"),
        tuple(each for each in found if each.kind == "query"),
    )
    _check(loaded)
    return loaded


def _module(path: Path) -> ModuleType:
    name = f"ottla_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as when Python runs the file, so that it can import its neighbours
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise PipelineError(error.msg, error.filename or str(path), error.lineno) from None
    except Exception as error:
        raise at_fault(error, str(path)) from error
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def at_fault(error: BaseException, file: str, default_line: int | None = None, what: str = "") -> PipelineError:
    """A PipelineError for an exception of a user's function, with the line of the file that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if _same_file(frame.filename, file)]
    cause = cause_of(error)
    if "SESSION_OR_CONTEXT_NOT_EXISTS" in cause.what:
        what += _NO_SESSION_YET
    return PipelineError(f"{what}{cause.what}", file, lines[-1] if lines else default_line, passes=cause.passes)


def _same_file(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _shown(made: Definition, path: Path) -> Definition:
    """The definition with the file path as the user wrote it."""
    return replace(made, file=str(path)) if _same_file(made.file, str(path)) else made


def _check(loaded: Pipeline) -> None:
    if not loaded.queries:
        raise PipelineError("there is no query: decorate a function with @pipeline.query, or INSERT INTO", loaded.file)
    seen: dict[str, Definition] = {}
    for made in (*loaded.streams, *loaded.queries):
        if made.name in seen:
            raise made.error(f"the name is taken already, in line {seen[made.name].line}")
        if not _NAME.fullmatch(made.name):
            raise made.error("names have letters, digits, '-', '_' and '.'")
        seen[made.name] = made
    known = [each.name for each in loaded.streams]
    for made in seen.values():
        unknown = [name for name in made.needs if name not in known and name not in _GIVEN]
        if unknown:
            raise made.error(f"there is no stream {unknown[0]!r}{_nearest(unknown[0], known)}")
        if made.mode is not None and made.mode not in MODES:
            raise made.error(f"mode is one of {', '.join(MODES)}, not {made.mode!r}")
        if made.restarts is not None and made.restarts < 0:
            raise made.error(f"restarts is a number from 0 on, not {made.restarts!r}")
    _check_circles(loaded.streams)
    _check_checkpoints(loaded.queries)


def _check_checkpoints(queries: Sequence[Definition]) -> None:
    """Refuse two queries with one checkpoint: Spark silently stops a query when another one is started with its
    checkpoint.
    """
    seen: dict[str, Definition] = {}
    for made in queries:
        if made.checkpoint is not None:
            other = seen.setdefault(made.checkpoint.rstrip("/"), made)
            if other is not made:
                raise made.error(f"its checkpoint is that of {other.name} already, in line {other.line}")


def _check_circles(streams: Sequence[Definition]) -> None:
    by_name = {each.name: each for each in streams}
    done: set[str] = set()

    def walk(made: Definition, above: tuple[str, ...]) -> None:
        if made.name in above:
            raise made.error(f"needs itself: {' → '.join((*above, made.name))}")
        if made.name not in done:
            for name in made.needs:
                if name in by_name:
                    walk(by_name[name], (*above, made.name))
            done.add(made.name)

    for each in streams:
        walk(each, ())


def _nearest(name: str, known: Iterable[str]) -> str:
    alike = difflib.get_close_matches(name, list(known), 1)
    return f": did you mean {alike[0]!r}?" if alike else ""
