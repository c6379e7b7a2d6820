"""Binary arrays in the form that compiled loops take: all bytes, and where each value begins and ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.columns.loops import Bools, Bytes, Longs, frozen_bytes


class Payloads(NamedTuple):
    """`data[begins[i]:ends[i]]` is the i-th value, if it is `there` (not null). A value that is too short begins after
    its end.
    """

    data: Bytes
    begins: Longs
    ends: Longs
    there: Bools

    @classmethod
    def of(cls, values: pa.Array, skipped: int | NDArray[Any] = 0) -> Payloads:
        """Take a binary or string array, without the first `skipped` bytes of each value."""
        wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
        _, ends, data = values.buffers()
        count = len(values)
        offsets = np.zeros(1, np.int64)
        if count:
            whole = np.frombuffer(ends, np.int64 if wide else np.int32)
            offsets = whole[values.offset : values.offset + count + 1].astype(np.int64)
        there = np.ones(count, np.bool_)
        if values.null_count:
            there = values.is_valid().to_numpy(zero_copy_only=False)
        content = frozen_bytes(data if data is not None else b"")
        return cls(content, offsets[:-1] + skipped, offsets[1:], there)

    def part(self, begin: int, end: int) -> Payloads:
        """Return the values from `begin` to `end`."""
        return Payloads(self.data, self.begins[begin:end], self.ends[begin:end], self.there[begin:end])

    @property
    def size_bytes(self) -> int:
        """An upper bound of the size of all values together."""
        if not len(self.begins):
            return 0
        return int(self.ends[-1]) - int(min(self.begins[0], self.ends[0])) + len(self.begins)
