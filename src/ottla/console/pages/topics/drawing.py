"""A partition's log as a picture: its segments by size, their indexes, and what retention takes next."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.admin.segments import LogSegment, PartitionSegments
from ottla.console.html import Markup, tag
from ottla.model import limits
from ottla.operations.formats import duration_text, size_text, time_text

_WIDTH, _HEIGHT = 640, 62
_LEAST = 4  # units of a segment's width
_GAP = 1.5


@dataclass(frozen=True, slots=True)
class Retention:
    """When old segments of a topic are deleted; None: never. `deletes`: the topic's cleanup.policy has delete.
    `is_known`: the user may see the settings.
    """

    after_ms: int | None
    above_bytes: int | None
    deletes: bool
    now_ms: int
    is_known: bool = True

    @property
    def sentence(self) -> str:
        """What becomes of old records."""
        if not self.is_known:
            return "The topic's settings are not told, so nobody can say here what retention takes next."
        if not self.deletes:
            return "Old records are compacted: the last record of each key stays. No segment is deleted by age or size."
        told = []
        if self.after_ms is not None:
            told.append(f"its newest record is older than {duration_text(self.after_ms)}")
        if self.above_bytes is not None:
            told.append(f"the partition has more than {size_text(self.above_bytes)} without it")
        if not told:
            return "Records are kept for ever: retention.ms and retention.bytes have no limit."
        return f"A segment is deleted as a whole, the oldest first, when {' or '.join(told)}. The active one stays."

    def due(self, found: PartitionSegments) -> set[int]:
        """The base offsets of the segments that the next run of retention deletes."""
        due: set[int] = set()
        if not self.deletes:
            return due
        left = sum(each.size_bytes for each in found.segments)
        for each in found.segments:
            is_old = self.after_ms is not None and 0 <= each.largest_timestamp < self.now_ms - self.after_ms
            is_much = self.above_bytes is not None and left - each.size_bytes >= self.above_bytes
            if each.is_active or not (is_old or is_much):
                break
            due.add(each.base_offset)
            left -= each.size_bytes
        return due


def segment_picture(index: int, found: PartitionSegments, retention: Retention) -> Markup:
    """The segments from left to right, as wide as their bytes; below each, its offset and time index by their fill."""
    shown = found.segments[-limits.CONSOLE_SEGMENTS_DRAWN_MAX :]
    due = retention.due(found)
    total = sum(each.size_bytes for each in shown) or 1
    room = _WIDTH - len(shown) * _LEAST
    fullest = max((_index_bytes(each) for each in shown), default=0) or 1
    drawn, x = [], 0.0
    for each in shown:
        width = _LEAST + room * each.size_bytes / total
        drawn.append(_segment(each, x, width, fullest, is_due=each.base_offset in due))
        x += width
    said = f"partition {index}: {found.segment_count} segments, {len(due)} are due for deletion"
    picture = tag("svg", drawn, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=said)
    older = found.segment_count - len(shown)
    words = [
        f"offsets {found.log_start_offset:,} to {found.end_offset:,}, ",
        f"{found.segment_count:,} segments, {size_text(sum(each.size_bytes for each in found.segments))}",
        f"; the newest {len(shown)} are drawn" if older else "",
    ]
    caption = tag("figcaption", tag("b", f"partition {index}"), " ", words)
    return tag("figure", caption, picture, class_="segments chart")


def legend() -> Markup:
    """What the colours mean."""
    named = (("s0", "closed"), ("s1", "active: it grows"), ("s4", "due for deletion"), ("s7", "offset, time index"))
    return tag("p", [[tag("i", class_=colour), text, " "] for colour, text in named], class_="legend")


def _segment(each: LogSegment, x: float, width: float, fullest: int, *, is_due: bool) -> Markup:
    colour = "s1" if each.is_active else "s4" if is_due else "s0"
    inner = max(width - _GAP, 1)
    newest = time_text(each.largest_timestamp) if each.largest_timestamp >= 0 else "unknown"
    told = (
        f"segment {each.base_offset}: {size_text(each.size_bytes)}, newest record {newest}, offset index "
        f"{size_text(each.offset_index_bytes)}, time index {size_text(each.time_index_bytes)}"
    )
    shapes = [tag("rect", x=f"{x:.1f}", y=0, width=f"{inner:.1f}", height=34, class_=colour)]
    for row, size_bytes in enumerate((each.offset_index_bytes, each.time_index_bytes)):
        filled = max(inner * size_bytes / fullest, 1 if size_bytes else 0)
        shapes.append(tag("rect", x=f"{x:.1f}", y=37 + 6 * row, width=f"{filled:.1f}", height=4, class_="s7"))
    if inner > _LABEL_WIDTH:
        shapes.append(tag("text", f"{each.base_offset:,}", x=f"{x + 2:.1f}", y=_HEIGHT - 3))
    return tag("g", tag("title", told), shapes)


_LABEL_WIDTH = 60


def _index_bytes(each: LogSegment) -> int:
    return max(each.offset_index_bytes, each.time_index_bytes)
