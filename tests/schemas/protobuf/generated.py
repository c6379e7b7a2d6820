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
    Field,
    File,
    Import,
    ImportKind,
    Items,
    Kind,
    Label,
    Literal,
    Message,
    NamePart,
    OneOf,
    Option,
    Reserved,
    Rpc,
    Service,
    Span,
    Value,
)

# Few of them, keywords that may be names among them: generating names is what takes the time.
NAMES = st.sampled_from(("a", "B", "c_d", "_e", "F1", "syntax", "import", "package", "service", "returns", "string"))
DOTTED = st.builds(
    lambda dot, parts: ("." if dot else "") + ".".join(parts), st.booleans(), st.lists(NAMES, min_size=1, max_size=3)
)
NUMBERS = st.integers(1, PROTOBUF_FIELD_NUMBER_MAX)
LITERALS = st.one_of(
    st.builds(Literal, st.just(Kind.STRING), data=st.binary(max_size=8)),
    st.builds(Literal, st.just(Kind.STRING), data=st.text(max_size=8).map(str.encode)),
    st.builds(Literal, st.just(Kind.NUMBER), st.sampled_from(("0", "-1", "0x1F", "1.5e10", ".5", "-0.1f", "017"))),
    st.builds(Literal, st.just(Kind.WORD), st.one_of(NAMES, st.sampled_from(("true", "inf", "-inf", "nan")))),
)


def _aggregates(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Aggregate]:
    keys = st.one_of(NAMES, DOTTED.map(lambda name: f"[{name}]"))
    return st.dictionaries(keys, values, max_size=3).map(lambda found: Aggregate(tuple(found.items())))


VALUES: st.SearchStrategy[Value] = st.recursive(
    LITERALS,
    lambda inner: st.one_of(_aggregates(inner), st.lists(inner, max_size=3).map(tuple).map(Items)),
    max_leaves=3,
)
PARTS = st.one_of(st.builds(NamePart, NAMES, st.just(False)), st.builds(NamePart, DOTTED, st.just(True)))
ONE_OPTION = st.builds(Option, st.lists(PARTS, min_size=1, max_size=3).map(tuple), VALUES)
# Within files a few will do.
_A = Option((NamePart("a.b", True), NamePart("c", False)), Aggregate((("x", Literal(Kind.NUMBER, "1")),)))
_B = Option((NamePart("deprecated", False),), Literal(Kind.WORD, "true"))
OPTIONS: st.SearchStrategy[tuple[Option, ...]] = st.sampled_from(((), (), (_A,), (_B,), (_A, _B)))


@st.composite
def spans(draw: st.DrawFn, low: int, high: int) -> Span:
    first = draw(st.integers(low, high))
    return Span(first, draw(st.one_of(st.none(), st.integers(first, high))))


def _reserved(low: int, high: int) -> st.SearchStrategy[tuple[Reserved, ...]]:
    value = st.one_of(spans(low, high), NAMES)
    return st.lists(st.builds(Reserved, st.lists(value, min_size=1, max_size=3).map(tuple)), max_size=2).map(tuple)


def _fields(label: Label | None, oneof: str | None = None) -> st.SearchStrategy[Field]:
    return st.builds(Field, NAMES, DOTTED, NUMBERS, st.just(label), oneof=st.just(oneof), options=OPTIONS)


MAPS = st.builds(Field, NAMES, DOTTED, NUMBERS, key=st.sampled_from(("string", "int32")), options=OPTIONS)
ENUMS = st.builds(
    EnumType,
    NAMES,
    st.lists(st.builds(EnumValue, NAMES, st.integers(-INT32_MAX - 1, INT32_MAX), OPTIONS), max_size=3).map(tuple),
    OPTIONS,
    _reserved(-INT32_MAX - 1, INT32_MAX),
)
RPCS = st.builds(Rpc, NAMES, DOTTED, DOTTED, st.booleans(), st.booleans(), OPTIONS)
SERVICES = st.builds(Service, NAMES, st.lists(RPCS, max_size=2).map(tuple), OPTIONS)


@st.composite
def messages(draw: st.DrawFn, is_proto3: bool, depth: int = 1) -> Message:
    labels: list[Label | None] = [None, Label.OPTIONAL] if is_proto3 else [Label.OPTIONAL, Label.REQUIRED]
    plain = st.one_of(MAPS, *(_fields(label) for label in (*labels, Label.REPEATED)))
    fields = draw(st.lists(plain, max_size=3))
    oneofs = [OneOf(name, draw(OPTIONS)) for name in draw(st.lists(NAMES, unique=True, max_size=2))]
    for oneof in oneofs:
        fields += draw(st.lists(_fields(None, oneof.name), max_size=2))
    if not is_proto3 and depth and draw(st.booleans()):
        name = draw(NAMES).capitalize().replace("_", "X")
        body = replace(draw(messages(is_proto3, 0)), name=name)
        fields.append(Field(name, "group", draw(NUMBERS), Label.REPEATED, group=body))
    extend_fields = st.lists(_fields(Label.REPEATED), min_size=1, max_size=2).map(tuple)
    ranges = st.builds(
        Extensions, st.lists(spans(1, PROTOBUF_FIELD_NUMBER_MAX), min_size=1, max_size=2).map(tuple), OPTIONS
    )
    return Message(
        draw(NAMES),
        tuple(fields),
        tuple(oneofs),
        tuple(draw(st.lists(messages(is_proto3, depth - 1), max_size=2)) if depth else ()),
        tuple(draw(st.lists(ENUMS, max_size=1))),
        tuple(draw(st.lists(st.builds(Extend, DOTTED, extend_fields), max_size=1))),
        () if is_proto3 else tuple(draw(st.lists(ranges, max_size=1))),
        draw(_reserved(1, PROTOBUF_FIELD_NUMBER_MAX)),
        draw(OPTIONS),
    )


@st.composite
def files(draw: st.DrawFn) -> File:
    syntax = draw(st.sampled_from((None, "proto2", "proto3")))
    imports = draw(st.lists(st.builds(Import, st.text(max_size=5), st.sampled_from(ImportKind)), max_size=3))
    return File(
        syntax,
        draw(st.one_of(st.none(), DOTTED.map(lambda name: name.removeprefix(".")))),
        tuple(sorted(imports, key=lambda each: list(ImportKind).index(each.kind))),
        draw(OPTIONS),
        tuple(draw(st.lists(messages(syntax == "proto3"), max_size=2))),
        tuple(draw(st.lists(ENUMS, max_size=1))),
        tuple(draw(st.lists(st.builds(Extend, DOTTED, st.just(())), max_size=1))),
        tuple(draw(st.lists(SERVICES, max_size=1))),
    )
