"""The instructions that an Avro schema is compiled to (rows of OP, COLUMN, A, B), and the reasons for bad values.

`A` and `B` by instruction: numbers factor (negative if the writer's type has 32 bits), greatest magnitude before that
factor; SKIP_LONG most bytes; FIXED and SKIP_FIXED bytes; ENUM first symbol, symbols; DECIMAL row of limits, bytes (-1:
a length comes first); NULLABLE branch of null, next instruction after a null (the columns that become null are those of
COLUMN); BRANCH first row of jumps, branches; BLOCK next instruction after the list, least bytes of an item; GO next
instruction; CONSTANT begin and end of the bytes; NULLS the column after the last. COLUMN -1 of a list means that it is
skipped.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.columns.loops import Bytes, Longs

OP, COLUMN, A, B = range(4)

# Leaves first: instructions for values without structure.
(
    INT,
    LONG,
    TIME,
    LONG_TO_FLOAT,
    LONG_TO_DOUBLE,
    STRING,
    BYTES,
    FIXED,
    DOUBLE,
    FLOAT,
    BOOLEAN,
    FLOAT_TO_DOUBLE,
    ENUM,
    DECIMAL,
    SKIP_LONG,
    SKIP_BYTES,
    SKIP_FIXED,
    NULLABLE,
    STRUCT_BEGIN,
    LIST_BEGIN,
    BLOCK,
    GO,
    BRANCH,
    NULLS,
    CONSTANT,
    CONSTANT_END,
    BAD,
    DONE,
) = range(28)

# The most bytes of a varint of 32 bits (as branches and symbols are, too) and of one of 64, with seven bits each.
INT_BYTES, LONG_BYTES = 5, 10

# Negative positions are reasons for which a value is bad.
SHORT, LONG_VARINT, NEGATIVE, NOT_UTF8, NO_BRANCH, NO_SYMBOL = range(-1, -7, -1)
TOO_LARGE, NOT_BOOLEAN, TOO_MANY, RESOLVE, NO_ROOM = range(-7, -12, -1)
REASONS = {
    SHORT: "the value ends too early",
    LONG_VARINT: "a number has too many bytes",
    NEGATIVE: "a length is negative",
    NOT_UTF8: "a string is not UTF-8",
    NO_BRANCH: "the union has no such branch",
    NO_SYMBOL: "the enum has no such symbol",
    TOO_LARGE: "the number does not fit its type",
    NOT_BOOLEAN: "a boolean is neither 0 nor 1",
    TOO_MANY: "more items than the value can hold",
}


class AvroProgramCode(NamedTuple):
    """The part of a program that the compiled loop reads."""

    lines: Longs
    jumps: Longs
    symbols: Longs
    limits: Longs
    constants: Bytes


class Program(NamedTuple):
    """A schema as instructions. `paths` has the place in the schema of each (for BAD: the whole reason)."""

    code: AvroProgramCode
    depth: int
    paths: tuple[str, ...]


def reason(program: Program, instruction: int, outcome: int) -> str:
    """Return why a row is bad, as a sentence."""
    path = program.paths[instruction]
    if outcome == RESOLVE:
        return path
    return f"{path}: {REASONS[outcome]}" if path else REASONS[outcome]
