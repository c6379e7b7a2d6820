"""The instructions that write columns as Avro (rows of OP, COLUMN, A, B), and the reasons for refused rows.

`A` and `B` by instruction: LONG divisor; FIXED bytes; ENUM first symbol, symbols; DECIMAL bytes (-1: as few as needed,
after a length); IF_NULL branch to write and next instruction if the entry is null, OPTIONAL the same for a union of
null and one other, whose branch it writes otherwise; MEMBERS first row of choices, members (one more row follows, for
the case that none is set); CONSTANT begin and end of the bytes; LIST next instruction if it is empty; NEXT where the
item begins.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.columns.loops import Bytes, Longs

OP, COLUMN, A, B = range(4)

# Leaves first: instructions for values without structure.
INT, LONG, DOUBLE, FLOAT, BOOLEAN, BYTES, FIXED, ENUM, DECIMAL = range(9)
OPTIONAL, IF_NULL, REQUIRED, CONSTANT, LIST, NEXT, MEMBERS, GO, DONE = range(9, 18)

NO_ROOM, IS_NULL, NO_MEMBER, WRONG_SIZE, NO_SYMBOL, TOO_LARGE = range(-1, -7, -1)
REASONS = {
    IS_NULL: "is null, which the schema does not allow",
    NO_MEMBER: "has no member set, which the schema does not allow",
    WRONG_SIZE: "has not as many bytes as the schema says",
    NO_SYMBOL: "is none of the enum's symbols",
    TOO_LARGE: "does not fit",
}


class WriteCode(NamedTuple):
    """The part of a program that the compiled loop reads. `choices` has a row per member of a union: column, branch
    (-1: there is none), next instruction.
    """

    lines: Longs
    choices: Longs
    symbols: Longs
    constants: Bytes


class WriteProgram(NamedTuple):
    """A schema as instructions. `paths` has the column's path of each."""

    code: WriteCode
    depth: int
    paths: tuple[str, ...]
