"""Generates the source of `decode(view, pos)` for one message and version.

The function is flat: nested structs become nested loops. Fixed-width fields that lie side by side, together with the
length or count that follows them, are one `unpack_from`, whose results go straight into the slots of the new object.
The elements of a request are also counted: a request of many elements is decoded by a generator, in steps (`Bound`).

Every length is checked against the remaining bytes before anything of that size is allocated, so a few bytes cannot
demand much memory or time.
"""

from __future__ import annotations

import struct

from ottla.model.limits import (
    ARRAY_ELEMENTS_MAX,
    ELEMENTS_AT_ONCE_MAX,
    ELEMENTS_PER_STEP,
    REQUEST_ELEMENTS_MAX,
    STRING_BYTES_MAX,
    TAGGED_FIELDS_MAX,
)
from ottla.wire.message import Field, Struct, fields
from ottla.wire.source import (
    NUMBERS_PER_ELEMENT_LOG2,
    SMALL,
    Bound,
    Source,
    absent,
    is_flexible,
    layout,
    least_bytes,
    present,
    small_layouts,
    tagged,
)
from ottla.wire.types import Fixed, Sized, Versions
from ottla.wire.varint import (
    bad_length,
    bad_mark,
    bad_tag,
    crowded_at_once,
    crowded_request,
    more_uvarint,
    null_value,
    skip_tags,
)


def decode_source(cls: type[Struct], version: int, bound: Bound = Bound.NONE) -> tuple[str, dict[str, object]]:
    """Return the source of `decode` and the names that it needs."""
    writer = _Decoder(cls, version, bound)
    what = f"v{version} {cls.__name__}"
    top = writer.struct(cls, what)
    writer.flush()
    writer.emit(f"return {top}, pos")
    head = ["def decode(view, pos=0):", "    size = len(view)", *writer.counters]
    return writer.emit.function(head, what, "StructError, IndexError, UnicodeDecodeError", "None")


class _Decoder:
    def __init__(self, cls: type[Struct], version: int, bound: Bound) -> None:
        self.version = version
        self.bound = bound
        self.flexible = version in cls.flexible
        self.emit = Source()
        self.emit.use("new", object.__new__)
        self._codes: list[str] = []
        self._targets: list[str] = []

    @property
    def counters(self) -> list[str]:
        if self.bound is Bound.NONE:
            return []
        at_once = self.bound is Bound.AT_ONCE
        counters = [f"    left = {ELEMENTS_AT_ONCE_MAX if at_once else REQUEST_ELEMENTS_MAX}"]
        # A message without any list has no other `yield`, and the function must be a generator.
        return counters if at_once else [*counters, "    work = 0", "    if size < 0:", "        yield"]

    def _count(self, count: str, where: str) -> None:
        """Count elements: they cost time and memory, however few bytes they have."""
        if self.bound is not Bound.NONE:
            self.emit(f"left -= {count}")
            with self.emit.block("if left < 0:"):
                crowded = self.emit.use("crowded", crowded_at_once if self.bound is Bound.AT_ONCE else crowded_request)
                self.emit(f"{crowded}({where!r})")

    def _step(self) -> None:
        if self.bound is Bound.STEPS:
            self.emit("work += 1")
            with self.emit.block(f"if work == {ELEMENTS_PER_STEP}:"):
                self.emit("work = 0")
                self.emit("yield")

    def take(self, code: str, target: str) -> None:
        """Read a fixed-width value into `target`, together with its neighbours."""
        self._codes.append(code)
        self._targets.append(target)

    def flush(self) -> None:
        if not self._codes:
            return
        codes = "".join(self._codes)
        if codes == "B":
            self.emit(f"{self._targets[0]} = view[pos]")
            self.emit("pos += 1")
        else:
            get = self.emit.use("get_" + codes.replace("?", "t"), layout(codes).unpack_from)
            comma = "," if len(self._targets) == 1 else ""
            self.emit(f"{', '.join(self._targets)}{comma} = {get}(view, pos)")
            self.emit(f"pos += {layout(codes).size}")
        self._codes, self._targets = [], []

    def struct(self, cls: type[Struct], where: str) -> str:
        """Read a struct; return the name of the local variable that holds it."""
        self.flush()
        made = self._make(cls)
        for field in absent(cls, self.version):
            self._default(made, field)
        tags = tagged(cls, self.version)
        for field in tags:
            self._default(made, field)
        for field in present(cls, self.version):
            self._field(f"{made}.{field.name}", field, f"{where}.{field.name}")
        if self.flexible:
            self._tags(made, tags, where)
        return made

    def _make(self, cls: type[Struct]) -> str:
        made = self.emit.name("o")
        self.emit(f"{made} = new({self.emit.use(cls.__qualname__.replace('.', '_'), cls)})")
        return made

    def _default(self, made: str, field: Field) -> None:
        if isinstance(field.default, type) and issubclass(field.default, Struct):
            inner = self._make(field.default)
            for each in fields(field.default):
                self._default(inner, each)
            self.emit(f"{made}.{field.name} = {inner}")
        else:
            self.emit(f"{made}.{field.name} = {field.default!r}")

    def _field(self, target: str, field: Field, where: str, *, in_tag: bool = False) -> None:
        compact = is_flexible(field, self.version, self.flexible)
        nullable = self.version in field.nullable
        if field.is_list:
            self._list(target, field, compact, nullable, where)
        elif isinstance(field.type, Fixed):
            self.take(field.type.code, target)
        elif isinstance(field.type, Sized):
            self._sized(target, field.type.kind, compact, nullable, where)
        elif nullable:
            self._nullable_struct(target, field.type, where, absent_mark=0 if in_tag else -1)
        else:
            self.emit(f"{target} = {self.struct(field.type, where)}")

    def _nullable_struct(self, target: str, cls: type[Struct], where: str, absent_mark: int) -> None:
        emit, mark = self.emit, self.emit.name("n")
        self.take("b", mark)
        self.flush()
        with emit.block(f"if {mark} == 1:"):
            made = self.struct(cls, where)
            self.flush()
            emit(f"{target} = {made}")
        with emit.block(f"elif {mark} == {absent_mark}:"):
            emit(f"{target} = None")
        with emit.block("else:"):
            emit(f"{emit.use('bad_mark', bad_mark)}({where!r}, {mark})")

    def _length(self, compact: bool, wide: str, limit: int | None, where: str) -> str:
        """Read a length or count.

        A compact one is stored plus one, with 0 for null; only a long one is checked here.
        """
        emit, length = self.emit, self.emit.name("n")
        self.take("B" if compact else wide, length)
        self.flush()
        if compact:
            with emit.block(f"if {length} > 127:"):
                emit(f"{length}, pos = {emit.use('more_uvarint', more_uvarint)}(view, pos, {length})")
                if limit is not None:
                    with emit.block(f"if {length} > {limit + 1}:"):
                        self._bad_length(length, compact, where)
        return length

    def _bad_length(self, length: str, compact: bool, where: str) -> None:
        meant = f"{length} - 1" if compact else length
        self.emit(f"{self.emit.use('bad_length', bad_length)}({where!r}, {meant}, size - pos)")

    def _null(self, target: str, length: str, compact: bool, nullable: bool, where: str) -> None:
        """Write the branches for a null or invalid length."""
        emit = self.emit
        if nullable:
            with emit.block("else:" if compact else f"elif {length} == -1:"):
                emit(f"{target} = None")
        elif compact:
            with emit.block("else:"):
                emit(f"{emit.use('null_value', null_value)}({where!r})")
        if not compact:
            with emit.block("else:"):
                self._bad_length(length, False, where)

    def _sized(self, target: str, kind: str, compact: bool, nullable: bool, where: str) -> None:
        wide, limit = ("h", STRING_BYTES_MAX) if kind == "string" else ("i", None)
        emit, length = self.emit, self._length(compact, wide, limit, where)
        with emit.block(f"if {length}:" if compact else f"if {length} >= 0:"):
            emit(f"end = pos + {length} - 1" if compact else f"end = pos + {length}")
            with emit.block("if end > size:"):
                emit(
                    f"{emit.use('bad_length', bad_length)}({where!r}, {length}{' - 1' if compact else ''}, size - pos)"
                )
            value = {"string": "view[pos:end].tobytes().decode()", "bytes": "view[pos:end].tobytes()"}
            emit(f"{target} = {value.get(kind, 'view[pos:end]')}")
            emit("pos = end")
        self._null(target, length, compact, nullable, where)

    def _list(self, target: str, field: Field, compact: bool, nullable: bool, where: str) -> None:
        emit, count = self.emit, self._length(compact, "i", ARRAY_ELEMENTS_MAX, where)
        least = max(1, least_bytes(field.type, self.version, self.flexible))
        with emit.block(f"if {count}:" if compact else f"if {count} >= 0:"):
            number = f"({count} - 1)" if compact and least > 1 else f"{count} - 1" if compact else count
            too_many = "" if compact else f" or {count} > {ARRAY_ELEMENTS_MAX}"
            with emit.block(f"if {number}{f' * {least}' if least > 1 else ''} > size - pos{too_many}:"):
                self._bad_length(count, compact, where)
            if isinstance(field.type, Fixed) and field.type.code != "16s":
                self._count(f"{count} >> {NUMBERS_PER_ELEMENT_LOG2}", where)
                self._numbers(target, field.type, count, compact)
            else:
                self._count(count, where)
                self._elements(target, field, count, compact, where)
        self._null(target, count, compact, nullable, where)

    def _numbers(self, target: str, kind: Fixed, count: str, compact: bool) -> None:
        emit = self.emit
        if compact:
            emit(f"{count} -= 1")
        small = emit.use(f"gets_{kind.code}", tuple(each.unpack_from for each in small_layouts(kind.code)))
        many = f"{emit.use('unpack_from', struct.unpack_from)}(f'>{{{count}}}{kind.code}', view, pos)"
        emit(f"{target} = list({small}[{count}](view, pos) if {count} < {SMALL} else {many})")
        emit(f"pos += {count}{f' * {kind.size_bytes}' if kind.size_bytes > 1 else ''}")

    def _elements(self, target: str, field: Field, count: str, compact: bool, where: str) -> None:
        emit, made = self.emit, self.emit.name("a")
        emit(f"{made} = []")
        # Most lists are short; for those a while loop is quicker than a range.
        with emit.block(f"while {count} > {1 if compact else 0}:"):
            emit(f"{count} -= 1")
            self._step()
            if isinstance(field.type, type):
                element = self.struct(field.type, where)
            else:
                element = emit.name("v")
                self._field(element, field._replace(is_list=False, nullable=Versions.of("none")), where)
            self.flush()
            emit(f"{made}.append({element})")
        emit(f"{target} = {made}")

    def _tags(self, made: str, tags: list[Field], where: str) -> None:
        emit, count = self.emit, self.emit.name("n")
        self.take("B", count)
        self.flush()
        if not tags:
            with emit.block(f"if {count}:"):
                emit(f"pos = {emit.use('skip_tags', skip_tags)}(view, pos, {count})")
            return
        more = emit.use("more_uvarint", more_uvarint)
        tag, length, stop = emit.name("t"), emit.name("n"), emit.name("end")
        with emit.block(f"if {count}:"):
            with emit.block(f"if {count} > 127:"):
                emit(f"{count}, pos = {more}(view, pos, {count})")
                with emit.block(f"if {count} > {TAGGED_FIELDS_MAX}:"):
                    self._bad_length(count, False, where)
            with emit.block(f"for _ in range({count}):"):
                for each in (tag, length):
                    emit(f"{each} = view[pos]")
                    emit("pos += 1")
                    with emit.block(f"if {each} > 127:"):
                        emit(f"{each}, pos = {more}(view, pos, {each})")
                emit(f"{stop} = pos + {length}")
                with emit.block(f"if {stop} > size:"):
                    self._bad_length(length, False, where)
                for index, field in enumerate(tags):
                    self._tag(f"{made}.{field.name}", field, "elif" if index else "if", tag, f"{where}.{field.name}")
                with emit.block("else:"):
                    emit(f"pos = {stop}")
                with emit.block(f"if pos != {stop}:"):
                    emit(f"{emit.use('bad_tag', bad_tag)}({where!r}, pos - {stop} + {length}, {length})")

    def _tag(self, target: str, field: Field, word: str, tag: str, where: str) -> None:
        with self.emit.block(f"{word} {tag} == {field.tag}:"):
            self._field(target, field, where, in_tag=True)
            self.flush()
