"""Texts and descriptors with something changed at random: understood consistently, or refused, and nothing else."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from random import Random

import pytest

from ottla.schemas.protobuf import ProtobufSchema, parse_protobuf
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType

CORPUS = Path(__file__).parent / "corpus"
IMPORTS = {"rich_options.proto": (CORPUS / "rich_options.proto").read_text()}
FILES = sorted(path.name for path in CORPUS.glob("*.proto"))
ATTEMPTS = 40


def check(text: str, old: ProtobufSchema, *, strict: bool) -> bool:
    """Whether it was understood; then everything that can be done with a schema is done."""
    try:
        schema = parse_protobuf(SchemaSource(text, SchemaType.PROTOBUF, (), IMPORTS), strict=strict)
    except InvalidSchema:
        return False
    schema.incompatibilities(old)
    old.incompatibilities(schema)
    if strict:
        schema.pool()
    again = parse_protobuf(SchemaSource(schema.canonical, SchemaType.PROTOBUF, (), IMPORTS), strict=strict)
    assert (again.canonical, again.normalized) == (schema.canonical, schema.normalized)
    return True


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_texts_with_words_changed(name: str, strict: bool) -> None:
    rng = Random(f"{name} {strict}")
    before = (CORPUS / name).read_text()
    old = parse_protobuf(SchemaSource(before, SchemaType.PROTOBUF, (), IMPORTS))
    understood = 0
    for _ in range(ATTEMPTS):
        words = re.findall(r'\s+|\w+|"[^"]*"|.', before)
        place, other = rng.randrange(len(words)), rng.randrange(len(words))
        change = rng.choice(("delete", "insert", "replace", "swap"))
        if change == "delete":
            del words[place]
        elif change == "insert":
            words.insert(place, words[other])
        elif change == "replace":
            words[place] = words[other]
        else:
            words[place], words[other] = words[other], words[place]
        understood += check("".join(words), old, strict=strict)
    assert 0 < understood < ATTEMPTS


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_descriptors_with_bytes_changed(name: str, strict: bool) -> None:
    rng = Random(f"{name} {strict}")
    old = parse_protobuf(SchemaSource((CORPUS / name).read_text(), SchemaType.PROTOBUF, (), IMPORTS))
    descriptor = base64.b64decode(old.serialized)
    understood = 0
    for _ in range(ATTEMPTS):
        changed = bytearray(descriptor)
        for _ in range(rng.choice((1, 1, 2))):
            changed[rng.randrange(len(changed))] = rng.choice((rng.randrange(256), rng.choice(descriptor)))
        understood += check(base64.b64encode(changed).decode(), old, strict=strict)
    assert 0 < understood < ATTEMPTS
