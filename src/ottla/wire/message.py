"""How a message is declared: one class for all its versions, fields as annotations, versions as marks on the fields.

    class HeartbeatRequest(Request["HeartbeatResponse"], key=12, versions="0-4", flexible="4+"):
        group_id: String
        generation_id: Int32
        member_id: String
        group_instance_id: String | None = on("3+", None)

    class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
        throttle_time_ms: Int32 = on("1+", 0)
        error_code: Int16

Rules
- A field without a default must be given to the constructor; one with a default may be left out. A mutable default (a
  list, a struct) is made anew for each message; a struct default is written as its class: `on("12+", SnapshotId,
  tag=2)`.
- To the type checker, `on()` has the type of its default. A field that is not on the wire in some version keeps its
  default there.
- Annotations are `Type`, `list[Type]`, either one with `| None`; `Type` is from `wire.types`, a struct nested in the
  class, or one of the module.
- Importing a declaration does next to nothing: fields are resolved, constructors written and codecs compiled on first
  use.
- Facts about a message type (`key`, `versions`, ...) belong to the class, not to its instances, so a field may be
  called `key` or `name` too.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, cast, dataclass_transform, overload

from ottla.wire.types import Fixed, Sized, Versions

T = TypeVar("T")
S = TypeVar("S", bound="Struct")
ResponseT_co = TypeVar("ResponseT_co", bound="Response", covariant=True)

REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()
_ALWAYS = Versions.of("0+")
_NEVER = Versions.of("none")
_ANNOTATION = re.compile(r"(list\[)?(\w+)\]?( \| None)?")


class Mark(NamedTuple):
    versions: str
    default: Any
    nullable: str | None
    tag: int | None
    flexible: str | None


@overload
def on(
    versions: str, default: type[S], *, nullable: str | None = ..., tag: int | None = ..., flexible: str | None = ...
) -> S: ...
@overload
def on(
    versions: str, default: T, *, nullable: str | None = ..., tag: int | None = ..., flexible: str | None = ...
) -> T: ...
def on(
    versions: str, default: Any, *, nullable: str | None = None, tag: int | None = None, flexible: str | None = None
) -> Any:
    """Declare a field that exists only in some versions, or is encoded in a special way.

    versions  where the field is on the wire; elsewhere it keeps `default`
    nullable  where it may be null, if not everywhere (`| None` in the annotation makes a field nullable at all)
    tag       the field is encoded as this tagged field, and only when it differs from `default`
    flexible  overrides the message's flexible versions for this field's own encoding
    """
    return Mark(versions, default, nullable, tag, flexible)


class Field(NamedTuple):
    name: str
    type: Fixed | Sized | type[Struct]
    is_list: bool
    default: Any
    versions: Versions
    nullable: Versions
    tag: int | None
    flexible: Versions | None


class _Facts(NamedTuple):
    key: int
    versions: Versions
    flexible: Versions
    latest_unstable: bool


@dataclass_transform(kw_only_default=True)
class MessageType(type):
    """The metaclass of message classes."""

    _facts: _Facts
    _annotations: dict[str, str]
    _marks: dict[str, object]
    _fields: tuple[Field, ...] | None
    _decoders: dict[object, Any]  # by version, or version and bound
    _encoders: dict[object, Any]

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: int = -1,
        versions: str = "0+",
        flexible: str = "none",
        latest_unstable: bool = False,
    ) -> MessageType:
        annotations = namespace.get("__annotations__", {})
        names = tuple(annotations)
        namespace["_annotations"] = annotations
        namespace["_marks"] = {field: namespace.pop(field) for field in names if field in namespace}
        namespace["__slots__"] = names
        namespace["_facts"] = _Facts(key, Versions.of(versions), Versions.of(flexible), latest_unstable)
        namespace["_fields"] = None
        namespace["_decoders"] = {}
        namespace["_encoders"] = {}
        return super().__new__(mcls, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **facts: object) -> None:
        super().__init__(name, bases, namespace)

    @property
    def key(cls) -> int:
        """The API key of a request or response, the type of a journal record; -1 if there is none."""
        return cls._facts.key

    @property
    def versions(cls) -> Versions:
        """The versions that exist."""
        return cls._facts.versions

    @property
    def flexible(cls) -> Versions:
        """The versions with compact lengths and tagged fields."""
        return cls._facts.flexible

    @property
    def latest_unstable(cls) -> bool:
        """Whether the highest version is still unstable in Kafka, and so must not be advertised."""
        return cls._facts.latest_unstable

    def since(cls, field: str) -> int:
        """Return the first version that has a field which not all versions have.

        Meant for constants of modules, so that the import fails if the field does not exist or is in every version.
        """
        mark = cls._marks.get(field)
        if not isinstance(mark, Mark) or Versions.of(mark.versions).low == 0:
            problem = "is in every version" if field in cls._annotations else "does not exist"
            raise ValueError(f"{cls.__qualname__}.{field} {problem}")
        return Versions.of(mark.versions).low

    def null_since(cls, field: str) -> int:
        """Return the first version in which a field may be null that may not be null in all versions."""
        mark = cls._marks.get(field)
        if not isinstance(mark, Mark) or mark.nullable is None:
            raise ValueError(f"{cls.__qualname__}.{field} may be null in every version or in none, or does not exist")
        return Versions.of(mark.nullable).low

    @property
    def name(cls) -> str:
        """The API's name for a request or response (`Produce`), the class name for anything else."""
        return cls.__name__.removesuffix("Request").removesuffix("Response") if cls.key >= 0 else cls.__name__


class Struct(metaclass=MessageType):
    """A group of fields inside a message."""

    def __init__(self, **values: object) -> None:
        # The first construction of a class generates its real constructor.
        cls = type(self)
        constructor = _constructor(cls)
        cls.__init__ = constructor  # type: ignore[method-assign]
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _slots(type(self)))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in _slots(type(self)))
        return f"{type(self).__qualname__}({inside})"


class Request(Struct, Generic[ResponseT_co]):
    """A message from a client, or from a node acting as one. `Request[HeartbeatResponse]` is a request that a
    HeartbeatResponse answers; only the type checker looks at it.
    """

    def __class_getitem__(cls, response: object) -> type[Request[Response]]:
        return cls


class Response(Struct):
    """The answer to a request of the same key."""


class Data(Struct):
    """A message that is no request or response: a header, a record of an internal topic, a blob in another message."""


def fields(cls: type[Struct]) -> tuple[Field, ...]:
    """Return the fields of a message or struct in wire order."""
    known = cls._fields
    if known is None:
        known = cls._fields = tuple(_field(cls, name, text) for name, text in cls._annotations.items())
    return known


def _field(cls: type[Struct], name: str, annotation: str) -> Field:
    match = _ANNOTATION.fullmatch(annotation)
    if match is None:
        raise TypeError(f"{cls.__qualname__}.{name}: cannot read the annotation {annotation!r}")
    is_list, type_name, optional = match.groups()
    resolved = vars(cls).get(type_name) or vars(sys.modules[cls.__module__])[type_name]
    kind = resolved if isinstance(resolved, MessageType) else resolved.__metadata__[0]
    mark = cls._marks.get(name, REQUIRED)
    if not isinstance(mark, Mark):
        mark = Mark("0+", mark, None, None, None)
    nullable = _NEVER if not optional else _ALWAYS if mark.nullable is None else Versions.of(mark.nullable)
    flexible = None if mark.flexible is None else Versions.of(mark.flexible)
    kind = cast("Fixed | Sized | type[Struct]", kind)
    return Field(name, kind, bool(is_list), mark.default, Versions.of(mark.versions), nullable, mark.tag, flexible)


def _constructor(cls: type[Struct]) -> Callable[..., None]:
    """Write `__init__`: plain keyword parameters and slot stores, as quick as one written by hand."""
    scope: dict[str, object] = {"FRESH": REQUIRED}
    parameters, lines = [], []
    # Required parameters first, as Python demands; callers pass keywords.
    for field in sorted(fields(cls), key=lambda field: field.default is not REQUIRED):
        name, default = field.name, field.default
        if default is REQUIRED:
            parameters.append(name)
            lines.append(f"    self.{name} = {name}")
        elif default == [] or isinstance(default, MessageType):
            fresh = "[]" if default == [] else f"D_{name}()"
            scope[f"D_{name}"] = default
            parameters.append(f"{name}=FRESH")
            lines.append(f"    self.{name} = {fresh} if {name} is FRESH else {name}")
        else:
            parameters.append(f"{name}={default!r}")
            lines.append(f"    self.{name} = {name}")
    source = f"def __init__({', '.join(['self', *parameters])}):\n" + "\n".join(lines or ["    pass"]) + "\n"
    return cast(
        "Callable[..., None]", build(source, f"<{cls.__module__}.{cls.__qualname__}.__init__>", scope, "__init__")
    )


def build(source: str, filename: str, scope: dict[str, object], name: str) -> Any:
    """Compile generated source and return the function `name`; tracebacks, pdb and `inspect` will show its lines.

    Threads may compile at once, also the same function. CPython 3.11 before 3.11.8 fails when several threads build
    syntax trees as Python objects (`ast.parse`, which formatting a traceback calls, too); this builds none.
    """
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), scope)  # noqa: S102  # source that this package generates
    return scope[name]


def _slots(cls: type[Struct]) -> tuple[str, ...]:
    return cast("tuple[str, ...]", vars(cls)["__slots__"])


def _shown(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > 32:
        return f"<{len(value)} bytes>"
    return repr(value)
