"""Watches: who reads a key hears that it changed, until it reads it no more."""

from __future__ import annotations

from ottla.server.loop.watches import Watches


class Reader:
    def __init__(self) -> None:
        self.marks: list[tuple[str, bool]] = []

    def mark(self, what: str, *, hurry: bool) -> None:
        self.marks.append((what, hurry))


def test_those_who_watch_a_key_are_told_by_what_they_call_it() -> None:
    watches = Watches()
    one, other = Reader(), Reader()
    watches.watch("a", one, "first")
    watches.watch("a", other, "second")
    watches.watch("b", one, "third")
    watches.changed("a", hurry=True)
    watches.changed("b", hurry=False)
    watches.changed("nobody reads it", hurry=True)
    assert one.marks == [("first", True), ("third", False)]
    assert other.marks == [("second", True)]


def test_nothing_is_left_of_those_who_read_no_more() -> None:
    watches = Watches()
    one, other = Reader(), Reader()
    watches.watch("a", one, "first")
    watches.watch("a", other, "second")
    assert (len(watches), watches.watchers("a")) == (1, 2)
    watches.unwatch("a", one)
    watches.unwatch("a", one)
    watches.unwatch("b", one)
    watches.changed("a", hurry=True)
    assert not one.marks and len(other.marks) == 1
    watches.unwatch("a", other)
    assert len(watches) == 0 and watches.watchers("a") == 0
