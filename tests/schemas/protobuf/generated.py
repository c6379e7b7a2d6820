"""Files of elements for Hypothesis, in the order in which the printer prints them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from ottla.model.limits import INT32_MAX, PROTOBUF_FIELD_NUMBER_MAX
from ottla.schemas.protobuf.elements import (
    Aggregate,
    EnumType,
    EnumValue,
    Extend,
    Extensions,
    Import,
    ImportKind,
    Label,
    ListLiteral,
    Literal,
    LiteralKind,
    Message,
    NamePart,
    NumberRange,
    ProtoField,
    ProtoFile,
    ProtoOneOf,
    ProtoOption,
    ProtoService,
    Reserved,
    Rpc,
    Value,
)

# Few of them, keywords that may be names among them: generating names is what takes the time.
NAMES = st.sampled_from(("a", "B", "c_d", "_e", "F1", "syntax", "import", "package", "service", "returns", "string"))
DOTTED = st.builds(
    lambda dot, parts: ("." if dot else "") + ".".join(parts), st.booleans(), st.lists(NAMES, min_size=1, max_size=3)
)
NUMBERS = st.integers(1, PROTOBUF_FIELD_NUMBER_MAX)
LITERALS = st.one_of(
    st.builds(Literal, st.just(LiteralKind.STRING), data=st.binary(max_size=8)),
    st.builds(Literal, st.just(LiteralKind.STRING), data=st.text(max_size=8).map(str.encode)),
    st.builds(
        Literal, st.just(LiteralKind.NUMBER), st.sampled_from(("0", "-1", "0x1F", "1.5e10", ".5", "-0.1f", "017"))
    ),
    st.builds(Literal, st.just(LiteralKind.WORD), st.one_of(NAMES, st.sampled_from(("true", "inf", "-inf", "nan")))),
)


def _aggregates(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Aggregate]:
    keys = st.one_of(NAMES, DOTTED.map(lambda name: f"[{name}]"))
    return st.dictionaries(keys, values, max_size=3).map(lambda found: Aggregate(tuple(found.items())))


VALUES: st.SearchStrategy[Value] = st.recursive(
    LITERALS,
    lambda inner: st.one_of(_aggregates(inner), st.lists(inner, max_size=3).map(tuple).map(ListLiteral)),
    max_leaves=3,
)
PARTS = st.one_of(st.builds(NamePart, NAMES, st.just(False)), st.builds(NamePart, DOTTED, st.just(True)))
ONE_OPTION = st.builds(ProtoOption, st.lists(PARTS, min_size=1, max_size=3).map(tuple), VALUES)
# Within files a few will do.
_A = ProtoOption((NamePart("a.b", True), NamePart("c", False)), Aggregate((("x", Literal(LiteralKind.NUMBER, "1")),)))
_B = ProtoOption((NamePart("deprecated", False),), Literal(LiteralKind.WORD, "true"))
OPTIONS: st.SearchStrategy[tuple[ProtoOption, ...]] = st.sampled_from(((), (), (_A,), (_B,), (_A, _B)))


@st.composite
def spans(draw: st.DrawFn, low: int, high: int) -> NumberRange:
    first = draw(st.integers(low, high))
    return NumberRange(first, draw(st.one_of(st.none(), st.integers(first, high))))


def _reserved(low: int, high: int) -> st.SearchStrategy[tuple[Reserved, ...]]:
    value = st.one_of(spans(low, high), NAMES)
    return st.lists(st.builds(Reserved, st.lists(value, min_size=1, max_size=3).map(tuple)), max_size=2).map(tuple)


def _fields(label: Label | None) -> st.SearchStrategy[ProtoField]:
    return st.builds(ProtoField, NAMES, DOTTED, NUMBERS, st.just(label), options=OPTIONS)


MAPS = st.builds(ProtoField, NAMES, DOTTED, NUMBERS, key=st.sampled_from(("string", "int32")), options=OPTIONS)
ENUMS = st.builds(
    EnumType,
    NAMES,
    st.lists(st.builds(EnumValue, NAMES, st.integers(-INT32_MAX - 1, INT32_MAX), OPTIONS), max_size=3).map(tuple),
    OPTIONS,
    _reserved(-INT32_MAX - 1, INT32_MAX),
)
RPCS = st.builds(Rpc, NAMES, DOTTED, DOTTED, st.booleans(), st.booleans(), OPTIONS)
SERVICES = st.builds(ProtoService, NAMES, st.lists(RPCS, max_size=2).map(tuple), OPTIONS)


# Strategies are made once: making them takes longer than drawing from them.
MEMBERS = st.lists(_fields(None), max_size=2)
PLAIN = {
    True: st.lists(st.one_of(MAPS, _fields(None), _fields(Label.OPTIONAL), _fields(Label.REPEATED)), max_size=3),
    False: st.lists(st.one_of(MAPS, *(_fields(label) for label in Label)), max_size=3),
}
ONEOF_NAMES = st.lists(NAMES, unique=True, max_size=2)
EXTENDS = st.lists(
    st.builds(Extend, DOTTED, st.lists(_fields(Label.REPEATED), min_size=1, max_size=2).map(tuple)), max_size=1
)
RANGES = st.lists(
    st.builds(Extensions, st.lists(spans(1, PROTOBUF_FIELD_NUMBER_MAX), min_size=1, max_size=2).map(tuple), OPTIONS),
    max_size=1,
)
RESERVED = _reserved(1, PROTOBUF_FIELD_NUMBER_MAX)
SOME_ENUMS = st.lists(ENUMS, max_size=1)
COUNTS = st.integers(0, 2)


def draw_message(draw: st.DrawFn, is_proto3: bool, depth: int = 1) -> Message:
    fields = draw(PLAIN[is_proto3])
    oneofs = [ProtoOneOf(name, draw(OPTIONS)) for name in draw(ONEOF_NAMES)]
    for oneof in oneofs:
        fields += [replace(each, oneof=oneof.name) for each in draw(MEMBERS)]
    if not is_proto3 and depth and draw(st.booleans()):
        body = replace(draw_message(draw, is_proto3, 0), name="Group")
        fields.append(ProtoField("Group", "group", draw(NUMBERS), Label.REPEATED, group=body))
    return Message(
        draw(NAMES),
        tuple(fields),
        tuple(oneofs),
        tuple(draw_message(draw, is_proto3, depth - 1) for _ in range(draw(COUNTS))) if depth else (),
        tuple(draw(SOME_ENUMS)),
        tuple(draw(EXTENDS)),
        () if is_proto3 else tuple(draw(RANGES)),
        draw(RESERVED),
        draw(OPTIONS),
    )


SYNTAXES = st.sampled_from((None, "proto2", "proto3"))
IMPORTS = st.lists(st.builds(Import, st.text(max_size=5), st.sampled_from(ImportKind)), max_size=3)
PACKAGES = st.one_of(st.none(), DOTTED.map(lambda name: name.removeprefix(".")))
SOME_SERVICES = st.lists(SERVICES, max_size=1)


@st.composite
def files(draw: st.DrawFn) -> ProtoFile:
    syntax = draw(SYNTAXES)
    return ProtoFile(
        syntax,
        draw(PACKAGES),
        tuple(sorted(draw(IMPORTS), key=lambda each: list(ImportKind).index(each.kind))),
        draw(OPTIONS),
        tuple(draw_message(draw, syntax == "proto3") for _ in range(draw(COUNTS))),
        tuple(draw(SOME_ENUMS)),
        tuple(draw(EXTENDS)),
        tuple(draw(SOME_SERVICES)),
    )
