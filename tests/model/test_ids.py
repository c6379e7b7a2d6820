"""Ids: text and bytes, what a random id may not be, and that ids which could be swapped have types."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import METADATA_TOPIC_ID, NO_ID, TopicPartition, random_uuid, uuid_bytes, uuid_text

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ottla"
ID_OR_EPOCH = re.compile(r"(.*_)?(id|epoch|broker|leader|node|replica)")
OF_ONE_GROUP = {"epoch", "assignment_epoch", "topology_epoch"}  # all but the last are group epochs


@given(st.binary(min_size=16, max_size=16))
def test_text_and_bytes_round_trip(raw: bytes) -> None:
    text = uuid_text(raw)
    assert len(text) == 22
    assert uuid_bytes(text) == raw
    assert uuid_bytes(text + "==") == raw


def test_kafkas_reserved_ids() -> None:
    assert uuid_text(NO_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 25, "AAAAAAAAAAAAAAAAAAAAA!", "AAAAAAAAAAAAAAAAAAAAA+", "é" * 22])
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        uuid_bytes(text)


@given(st.integers(0, 2**32))
def test_random_ids_are_version_4_and_safe_on_a_command_line(seed: int) -> None:
    raw = random_uuid(random.Random(seed))
    assert UUID(bytes=raw).version == 4
    assert not uuid_text(raw).startswith("-")
    assert random_uuid(random.Random(seed)) == raw


def test_a_partition_prints_like_its_directory() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_no_two_plain_ids_or_epochs_stand_side_by_side() -> None:
    """Where two could be swapped, at least one has a type of its own (ADR 0041)."""
    pairs = [
        f"{path.relative_to(SOURCE)}:{line}: {first}, {second}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, fields in _positional(ast.parse(path.read_text()))
        for first, second in pairwise(fields)
        if ID_OR_EPOCH.fullmatch(first) and ID_OR_EPOCH.fullmatch(second) and not {first, second} <= OF_ONE_GROUP
    ]
    assert not pairs


def _positional(module: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Yields what is passed by position, to functions and named tuples: line and names; "" for what is no `int`."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            passed = [*node.args.posonlyargs, *node.args.args]
            yield node.lineno, [each.arg if _is_int(each.annotation) else "" for each in passed]
        elif isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases):
            fields = [(each.target, each.annotation) for each in node.body if isinstance(each, ast.AnnAssign)]
            yield node.lineno, [ast.unparse(name) if _is_int(annotation) else "" for name, annotation in fields]


def _is_int(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) == "int"
