"""Writes the source of `encode(message, out, splices)` for one message and version.
 Like decoding it is flat, and fixed-width fields are packed together with the length that follows them. A tagged
field is written only when it differs from its default. Records that are not bytes are left out: their length is
written, and where they belong is noted in `splices`.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.wire.message import Field, Struct
from ottla.wire.source import SMALL, Source, is_flexible, layout, present, small_layouts, tagged
from ottla.wire.types import Fixed, Sized, Versions, WireError
from ottla.wire.varint import STRING_BYTES_MAX, bad_length, check_uuid, null_value, spliced_bytes, uvarint_bytes


def encode_source(cls: type[Struct], version: int) -> tuple[str, dict[str, Any]]:
    """The source of `encode` and the names it needs."""
    writer = _Encoder(cls, version)
    writer.struct(cls, "m", f"{cls.__name__} v{version}")
    writer.flush()
    names = "".join(f", {name}={name}" for name in writer.emit.scope)
    head = [f"def encode(m, out, splices{names}):", "    try:"]
    body = ["    " + line for line in writer.emit.lines] or ["        pass"]
    tail = [
        "    except (StructError, TypeError, AttributeError, UnicodeEncodeError) as error:",
        f"        raise WireError(f'{cls.__name__} v{version}: {{error}}') from error",
    ]
    scope = {**writer.emit.scope, "StructError": struct.error, "WireError": WireError}
    return "\n".join(head + body + tail) + "\n", scope


class _Encoder:
    def __init__(self, cls: type[Struct], version: int) -> None:
        self.version = version
        self.flexible = version in cls.flexible
        self.emit = Source()
        self._out = "out"
        self._codes: list[str] = []
        self._values: list[str] = []

    def put(self, code: str, *value: str) -> None:
        """Write a fixed-width value, together with its neighbours. `x` is a zero byte and takes none."""
        self._codes.append(code)
        self._values.extend(value)

    def flush(self) -> None:
        packed = self._packed()
        if packed:
            self.emit(f"{self._out} += {packed}")
        self._codes, self._values = [], []

    def _packed(self, code: str = "", *value: str) -> str:
        """The expression for all that is waiting to be written, and one value more."""
        codes = "".join(self._codes) + code
        if not codes.strip("x"):
            return repr(bytes(len(codes))) if codes else ""
        pack = self.emit.use("put_" + codes, layout(codes).pack)
        return f"{pack}({', '.join([*self._values, *value])})"

    def struct(self, cls: type[Struct], holder: str, where: str) -> None:
        for field in present(cls, self.version):
            self._field(f"{holder}.{field.name}", field, f"{where} {field.name}")
        if self.flexible:
            self._tags(cls, holder, where)

    def _field(self, value: str, field: Field, where: str, *, in_tag: bool = False) -> None:
        emit = self.emit
        compact = is_flexible(field, self.version, self.flexible)
        nullable = self.version in field.nullable
        if isinstance(field.type, Fixed) and not field.is_list:
            if field.type.code == "16s":
                emit(f"{emit.use('check_uuid', check_uuid)}({where!r}, {value})")
            self.put("B" if field.type.code == "?" else field.type.code, value)
            return
        local = emit.name("v")
        emit(f"{local} = {value}")
        if field.is_list:
            self._list(local, field, compact, nullable, where)
        elif isinstance(field.type, Sized):
            kind = field.type.kind
            self._nullable(local, nullable, "x" if compact else "h" if kind == "string" else "i", where)
            with emit.block("else:"):
                self._sized(local, kind, compact, where)
        elif isinstance(field.type, type):
            self._struct(local, field.type, nullable, in_tag, where)
        self._codes, self._values = [], []

    def _struct(self, local: str, cls: type[Struct], nullable: bool, in_tag: bool, where: str) -> None:
        waiting = self._codes, self._values
        self._nullable(local, nullable, "x" if in_tag else "b", where)
        with self.emit.block("else:"):
            self._codes, self._values = list(waiting[0]), list(waiting[1])
            if nullable:
                self.put("b", "1")
            self.struct(cls, local, where)
            self.flush()

    def _nullable(self, local: str, nullable: bool, code: str, where: str) -> None:
        """The branch for None: a null with what waits before it, or an error."""
        with self.emit.block(f"if {local} is None:"):
            if nullable:
                self.emit(f"{self._out} += {self._packed(code, *([] if code == 'x' else ['-1']))}")
            else:
                self.emit(f"{self.emit.use('null_value', null_value)}({where!r})")

    def _length(self, length: str, compact: bool, wide: str) -> None:
        """Write a length or count with what waits before it; the wait goes on for the other branches."""
        emit = self.emit
        if not compact:
            emit(f"{self._out} += {self._packed(wide, length)}")
            return
        with emit.block(f"if {length} < 127:"):
            emit(f"{self._out} += {self._packed('B', f'{length} + 1')}")
        with emit.block("else:"):
            if self._codes:
                emit(f"{self._out} += {self._packed()}")
            emit(f"{self._out} += {emit.use('uvarint_bytes', uvarint_bytes)}({length} + 1)")

    def _sized(self, local: str, kind: str, compact: bool, where: str) -> None:
        emit, length = self.emit, self.emit.name("n")
        if kind == "records":
            self._records(local, length, compact)
            return
        if kind == "string":
            emit(f"{local} = {local}.encode()")
        emit(f"{length} = len({local})")
        if kind == "string":
            with emit.block(f"if {length} > {STRING_BYTES_MAX}:"):
                emit(f"{emit.use('bad_length', bad_length)}({where!r}, {length}, {STRING_BYTES_MAX})")
        self._length(length, compact, "h" if kind == "string" else "i")
        emit(f"{self._out} += {local}")

    def _records(self, local: str, length: str, compact: bool) -> None:
        emit, inline = self.emit, self.emit.name("i")
        emit(f"{inline} = isinstance({local}, {emit.use('BYTES', (bytes, bytearray, memoryview))})")
        emit(f"{length} = len({local}) if {inline} else {emit.use('spliced_bytes', spliced_bytes)}({local})")
        self._length(length, compact, "i")
        with emit.block(f"if {inline}:"):
            emit(f"{self._out} += {local}")
        with emit.block("else:"):
            emit(f"splices.append((len({self._out}), {local}))")

    def _list(self, local: str, field: Field, compact: bool, nullable: bool, where: str) -> None:
        emit, count = self.emit, self.emit.name("n")
        self._nullable(local, nullable, "x" if compact else "i", where)
        with emit.block("else:"):
            emit(f"{count} = len({local})")
            self._length(count, compact, "i")
            self._codes, self._values = [], []
            if isinstance(field.type, Fixed) and field.type.code != "16s":
                code = field.type.code
                small = emit.use(f"puts_{code}", tuple(each.pack for each in small_layouts(code)))
                many = f"{emit.use('pack', struct.pack)}(f'>{{{count}}}{code}', *{local})"
                emit(f"{self._out} += {small}[{count}](*{local}) if {count} < {SMALL} else {many}")
                return
            element = emit.name("e")
            with emit.block(f"for {element} in {local}:"):
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
            emit(f"{self._out} += {self._packed('B', ' + '.join(f'({test})' for test in tests))}")
            waiting, self._codes, self._values = (self._codes, self._values), [], []
            for field, test in zip(tags, tests, strict=True):
                with emit.block(f"if {test}:"):
                    self._tag(field, locals_[field.name], f"{where} {field.name}")
        self._codes, self._values = waiting
        with emit.block("else:"):
            emit(f"{self._out} += {self._packed('x')}")
        self._codes, self._values = [], []

    def _tag(self, field: Field, local: str, where: str) -> None:
        emit, outer, size = self.emit, self._out, self.emit.use("uvarint_bytes", uvarint_bytes)
        self._out = emit.name("body")
        emit(f"{self._out} = bytearray()")
        self._field(local, field, where, in_tag=True)
        self.flush()
        body, self._out = self._out, outer
        emit(f"{outer} += {uvarint_bytes(field.tag or 0)!r} + {size}(len({body})) + {body}")

    def _differs(self, local: str, field: Field) -> str:
        """The test whether a tagged field must be written."""
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
