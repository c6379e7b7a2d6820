"""Generates the source of `encode(message, out, splices)` for one message and version.

As in decoding, the function is flat, and fixed-width fields are packed together with the length that follows them. A
tagged field is written only when it differs from its default. Records that are not bytes are left out: their length is
written, and their position is noted in `splices`.
"""

from __future__ import annotations

import struct

from ottla.model.limits import ELEMENTS_PER_STEP, STRING_BYTES_MAX
from ottla.wire.message import Field, Struct
from ottla.wire.source import SMALL, Bound, Source, is_flexible, layout, present, small_layouts, tagged
from ottla.wire.types import Fixed, Sized, Versions
from ottla.wire.varint import bad_length, bad_uuid, spliced_bytes, uvarint_bytes


def encode_source(cls: type[Struct], version: int, bound: Bound = Bound.NONE) -> tuple[str, dict[str, object]]:
    """Return the source of `encode` and the names that it needs."""
    writer = _Encoder(cls, version, bound)
    what = f"v{version} {cls.__name__}"
    writer.struct(cls, "m", what)
    writer.flush()
    # A message without any list has no other `yield`, and the function must be a generator.
    counters = ["    work = 0", "    if m is None:", "        yield"] if bound is Bound.STEPS else []
    head = ["def encode(m, out, splices):", *counters]
    return writer.emit.function(head, what, "StructError, TypeError, AttributeError, UnicodeEncodeError", "error")


class _Encoder:
    def __init__(self, cls: type[Struct], version: int, bound: Bound) -> None:
        self.version = version
        self.bound = bound
        self.flexible = version in cls.flexible
        self.emit = Source()
        self._out = "out"
        self._codes: list[str] = []
        self._values: list[str] = []

    def put(self, code: str, *value: str) -> None:
        """Write a fixed-width value, together with its neighbours. `x` is a zero byte and takes no value."""
        self._codes.append(code)
        self._values.extend(value)

    def flush(self) -> None:
        if self._codes:
            self._write()
        self._codes, self._values = [], []

    def _write(self, code: str = "", *value: str) -> None:
        """Write all pending values, and one more.

        They stay pending, because another branch may have to write them, too.
        """
        codes, values = "".join(self._codes) + code, [*self._values, *value]
        if not codes.strip("x"):
            self.emit(f"{self._out} += {bytes(len(codes))!r}")
        elif codes == "B":
            self.emit(f"{self._out}.append({values[0]})")
        else:
            pack = self.emit.use("put_" + codes, layout(codes).pack)
            self.emit(f"{self._out} += {pack}({', '.join(values)})")

    def struct(self, cls: type[Struct], holder: str, where: str) -> None:
        for field in present(cls, self.version):
            self._field(f"{holder}.{field.name}", field, f"{where}.{field.name}")
        if self.flexible:
            self._tags(cls, holder, where)

    def _field(self, value: str, field: Field, where: str, *, in_tag: bool = False) -> None:
        emit, kind = self.emit, field.type
        if isinstance(kind, Fixed) and not field.is_list:
            if kind.code == "16s":
                # `struct` would pad or cut it silently
                with emit.block(f"if len({value}) != 16:"):
                    emit(f"{emit.use('bad_uuid', bad_uuid)}({where!r}, {value})")
            # A bool is packed as a number, because `struct` would accept None as False.
            self.put("B" if kind.code == "?" else kind.code, value)
            return
        compact = is_flexible(field, self.version, self.flexible)
        if self.version not in field.nullable:
            self._value(value, field, compact, where)
            return
        local = emit.name("v")
        emit(f"{local} = {value}")
        with emit.block(f"if {local} is None:"):
            self._null(field, compact, in_tag)
        with emit.block("else:"):
            if isinstance(kind, type) and not field.is_list:
                self.put("b", "1")
            self._value(local, field, compact, where)
            self.flush()

    def _null(self, field: Field, compact: bool, in_tag: bool) -> None:
        if isinstance(field.type, type) and not field.is_list:
            code = "x" if in_tag else "b"
        elif compact:
            code = "x"
        else:
            code = "h" if field.type == Sized("string") and not field.is_list else "i"
        self._write(code, *([] if code == "x" else ["-1"]))

    def _value(self, value: str, field: Field, compact: bool, where: str) -> None:
        """Write a value that is not None.

        If the value is None nevertheless, the generated code fails with a WireError.
        """
        if field.type == Sized("string") and not field.is_list:
            self._string(value, compact, where)
            return
        if not value.isidentifier():
            local = self.emit.name("v")
            self.emit(f"{local} = {value}")
            value = local
        if field.is_list:
            self._list(value, field, compact, where)
        elif isinstance(field.type, type):
            self.struct(field.type, value, where)
        elif field.type == Sized("records"):
            self._records(value, compact)
        else:
            self._bytes(value, compact)

    def _length(self, length: str, compact: bool, wide: str) -> None:
        """Write a length or count together with the pending values before it."""
        emit = self.emit
        if not compact:
            self.put(wide, length)
            self.flush()
            return
        with emit.block(f"if {length} < 127:"):
            self._write("B", f"{length} + 1")
        with emit.block("else:"):
            self.flush()
            emit(f"{self._out} += {emit.use('uvarint_bytes', uvarint_bytes)}({length} + 1)")

    def _string(self, value: str, compact: bool, where: str) -> None:
        emit, text, length = self.emit, self.emit.name("s"), self.emit.name("n")
        emit(f"{text} = {value}.encode()")
        emit(f"{length} = len({text})")
        with emit.block(f"if {length} > {STRING_BYTES_MAX}:"):
            emit(f"{emit.use('bad_length', bad_length)}({where!r}, {length}, {STRING_BYTES_MAX})")
        self._length(length, compact, "h")
        emit(f"{self._out} += {text}")

    def _bytes(self, local: str, compact: bool) -> None:
        length = self.emit.name("n")
        self.emit(f"{length} = len({local})")
        self._length(length, compact, "i")
        self.emit(f"{self._out} += {local}")

    def _records(self, local: str, compact: bool) -> None:
        emit, length, inline = self.emit, self.emit.name("n"), self.emit.name("i")
        emit(f"{inline} = isinstance({local}, {emit.use('BYTES', (bytes, bytearray, memoryview))})")
        emit(f"{length} = len({local}) if {inline} else {emit.use('spliced_bytes', spliced_bytes)}({local})")
        self._length(length, compact, "i")
        with emit.block(f"if {inline}:"):
            emit(f"{self._out} += {local}")
        with emit.block("else:"):
            emit(f"splices.append((len({self._out}), {local}))")

    def _list(self, local: str, field: Field, compact: bool, where: str) -> None:
        emit, count = self.emit, self.emit.name("n")
        emit(f"{count} = len({local})")
        self._length(count, compact, "i")
        if isinstance(field.type, Fixed) and field.type.code != "16s":
            code = field.type.code
            small = emit.use(f"puts_{code}", tuple(each.pack for each in small_layouts(code)))
            many = f"{emit.use('pack', struct.pack)}(f'>{{{count}}}{code}', *{local})"
            emit(f"{self._out} += {small}[{count}](*{local}) if {count} < {SMALL} else {many}")
            return
        element = emit.name("e")
        with emit.block(f"for {element} in {local}:"):
            if self.bound is Bound.STEPS:
                emit("work += 1")
                with emit.block(f"if work == {ELEMENTS_PER_STEP}:"):
                    emit("work = 0")
                    emit("yield")
            if isinstance(field.type, type):
                self.struct(field.type, element, where)
            else:
                self._field(element, field._replace(is_list=False, nullable=Versions.of("none")), where)
            self.flush()

    def _tags(self, cls: type[Struct], holder: str, where: str) -> None:
        tags = tagged(cls, self.version)
        if not tags:
            self.put("x")
            return
        emit = self.emit
        locals_ = {field.name: emit.name("v") for field in tags}
        for field in tags:
            emit(f"{locals_[field.name]} = {holder}.{field.name}")
        tests = [self._differs(locals_[field.name], field) for field in tags]
        with emit.block(f"if {' or '.join(tests)}:"):
            self._write("B", " + ".join(f"({test})" for test in tests))
            waiting, self._codes, self._values = (self._codes, self._values), [], []
            for field, test in zip(tags, tests, strict=True):
                with emit.block(f"if {test}:"):
                    self._tag(field, locals_[field.name], f"{where}.{field.name}")
        self._codes, self._values = waiting
        with emit.block("else:"):
            self.put("x")
            self.flush()

    def _tag(self, field: Field, local: str, where: str) -> None:
        emit, outer, size = self.emit, self._out, self.emit.use("uvarint_bytes", uvarint_bytes)
        self._out = emit.name("body")
        emit(f"{self._out} = bytearray()")
        self._field(local, field, where, in_tag=True)
        self.flush()
        body, self._out = self._out, outer
        emit(f"{outer} += {uvarint_bytes(field.tag or 0)!r} + {size}(len({body})) + {body}")

    def _differs(self, local: str, field: Field) -> str:
        """Return the expression that tests whether a tagged field must be written."""
        default = field.default
        if default is None:
            return f"{local} is not None"
        if not (isinstance(default, type) and issubclass(default, Struct)):
            return f"{local} != {default!r}"
        tests = [self._differs(f"{local}.{each.name}", each) for each in present(default, self.version)]
        tests += [self._differs(f"{local}.{each.name}", each) for each in tagged(default, self.version)]
        if self.version in field.nullable:
            tests.insert(0, f"{local} is None")
        return f"({' or '.join(tests)})"
