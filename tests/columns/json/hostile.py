"""JSON texts that need more room than their length seems to promise, each alone and beside others.

As a program it decodes them all: a write or read outside of an array is an IndexError in plain Python, but may end the
process where loops are compiled. So tests start it as a process of its own.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from tests.columns.json.texts import SCHEMA, source

from ottla.columns.json.decoder import JsonDecoder
from ottla.schemas.json.payload import NotJson, parse

UNITS = [
    b"[", b"{", b'{"a":', b'{"":', b"[,", b"[[],[", b"[[[", b"[]", b"[0,", b"[0", b"-",
    b'"', b'"a', b'["', b'{"":[', b'[{"":',
    b'{"any":', b'{"tags":[', b'{"counts":{"":', b'{"inner":{"b":[{"c":', b'"\\', b'["\\u', b"[ ", b"[t",
]  # fmt: skip
LENGTHS = [*range(1, 25), 63, 64, 65, 100, 499, 500, 501, 600]
HOSTILE = sorted({(unit * length)[:length] for unit in UNITS for length in LENGTHS})
SCHEMAS = [SCHEMA, {}, {"type": "array", "items": {"type": "array"}}, {"type": "object", "additionalProperties": {}}]


def main() -> None:
    for schema in SCHEMAS:
        decoder = JsonDecoder(source(schema))
        batches = [[text] for text in HOSTILE] + [[*pair] for pair in pairwise(HOSTILE[::5])] + [HOSTILE[::-7]]
        for batch in batches:
            made = decoder.decode(pa.array(batch, pa.binary()))
            made.columns.validate(full=True)
            for row, text in enumerate(batch):
                assert row in made.reasons or is_json(text), text


def is_json(text: bytes) -> bool:
    try:
        parse(text)
    except NotJson:
        return False
    return True


if __name__ == "__main__":
    main()
