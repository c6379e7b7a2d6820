"""Readable scripts for machines: commands, `----`, and the expected results.

    # why this block is here
    join anna
    advance 3s
    ----
    anna: joined generation 1 as leader
    timer session anna in 10000 ms

A `Stage` runs one machine as a host does: with a journal in memory (through the real codec), a clock that only scripts
move, and replies that wait until their records are committed. A test gives it verbs (functions that submit commands)
and a function that shows replies, entries and timers as text; `play` runs a file of blocks and compares. With
OTTLA_REWRITE=1 it also writes the actual results to the file, to be reviewed.

Verbs of every stage: `advance 500` (or `3s`), `set_clock -3600s` (sets the time of day; no time passes), `hold` (stops
committing appends), `commit` (commits them again), `restart` (makes a new machine from the journal; waiting commands
get an error).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ottla.machine.keyed import Entry, Marker, Types, decode, encode
from ottla.machine.kit import Loaded, Machine, Moment, OneByOne, Result, Timer
from ottla.machine.runner import Runner
from ottla.model.errors import ApiError, ErrorCode

MachineT = TypeVar("MachineT", bound=Machine[Any, Any, Any])
Show = Callable[[Any], str | None]  # None: no line
Verb = Callable[..., None]
Written = tuple[bytes, bytes | None, int, int] | Marker  # key, value, producer id and epoch

RULE = "----"


class Stage(Generic[MachineT]):
    """Runs one machine. `make` makes an empty one; `show` turns a reply, Entry, Marker, Timer, note or effect into
    text.
    """

    def __init__(self, make: Callable[[], MachineT], types: Types, show: Show, *, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._set_ms = 0
        self.journal: list[Written] = []
        self.lines: list[str] = []
        self._make = make
        self._types = types
        self._show = show
        self._holding = False
        self._begin(make())

    def _begin(self, machine: MachineT) -> None:
        self.machine = machine
        end = len(self.journal)
        self._runner: Runner[Any, Any, Any] = Runner(
            _Overheard(machine, self.tell), self._append, perform=self.tell, next_offset=end, committed_offset=end
        )

    def submit(self, who: str, command: Any) -> None:
        """Submit a command. The reply becomes a line that begins with `who`; a reply of None becomes no line."""
        self._runner.submit(command, self.moment(), lambda value: self._reply(who, value))
        self._commit()

    def advance(self, ms: int) -> None:
        """Advance the time; timers that are due meanwhile fire at their own times."""
        until_ms = self.now_ms + ms
        while (due_ms := self._runner.next_deadline_ms) is not None and due_ms + self._set_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms + self._set_ms)
            self._runner.wake(self.moment())
            self._commit()
        self.now_ms = until_ms

    def set_clock(self, ms: int) -> None:
        """Set the time of day forward or back."""
        self.now_ms += ms
        self._set_ms += ms

    def moment(self) -> Moment:
        return Moment(self.now_ms, self.now_ms - self._set_ms)

    def hold(self) -> None:
        self._holding = True

    def commit(self) -> None:
        self._holding = False
        self._commit()

    def mark(self, marker: Marker) -> None:
        """End a transaction in this journal."""
        self.journal.append(marker)
        self.tell(marker)
        self.machine.apply(marker)
        self._runner.follow(len(self.journal))
        self._commit()

    def replayed(self) -> MachineT:
        """A new machine, made from the journal alone."""
        machine = self._make()
        for written in self.journal:
            entry: Entry | Marker | None
            if isinstance(written, Marker):
                entry = written
            else:
                key, value, producer_id, producer_epoch = written
                entry = decode(key, value, self._types)
                assert entry is not None, f"{key!r} cannot be read back"
                entry = entry._replace(producer_id=producer_id, producer_epoch=producer_epoch)
            machine.apply(entry)
        return machine

    def restart(self) -> None:
        """Restart: the machine is replaced by one made from the journal."""
        self._runner.resign(ApiError(ErrorCode.NOT_COORDINATOR))
        self._begin(self.replayed())
        self.submit("loaded", Loaded())

    def tell(self, thing: Any) -> None:
        line = thing if isinstance(thing, str) else self._show(thing)
        if line is not None:
            self.lines.append(line)

    def told(self) -> list[str]:
        """The lines since the last call."""
        lines, self.lines = self.lines, []
        return lines

    def _append(self, entries: Sequence[Entry]) -> int:
        for entry in entries:
            self.journal.append((*encode(entry), entry.producer_id, entry.producer_epoch))
            self.tell(entry)
        return len(self.journal)

    def _commit(self) -> None:
        if not self._holding:
            self._runner.commit(len(self.journal))

    def _reply(self, who: str, value: Any) -> None:
        if value is not None:
            text = value.code.name if isinstance(value, ApiError) else self._show(value)
            if text is not None:
                self.tell(f"{who}: {text}")


class _Overheard(OneByOne):
    """A machine whose timers are reported."""

    def __init__(self, machine: Machine[Any, Any, Any], tell: Callable[[Timer], None]) -> None:
        self._machine = machine
        self._tell = tell
        self.apply = machine.apply
        self.note = machine.note

    def decide(self, command: Any, now_ms: int) -> Result[Any, Any]:
        result = self._machine.decide(command, now_ms)
        for timer in result.timers:
            left_ms = None if timer.deadline_ms is None else timer.deadline_ms - now_ms
            self._tell(timer._replace(deadline_ms=left_ms))  # the time left is easier to read than a point in time
        return result


class Narrator(Protocol):
    """The interface for playing scripts; one with a clock has `advance`, too."""

    def told(self) -> list[str]: ...


def play(path: Path, stage: Narrator, verbs: Mapping[str, Verb]) -> None:
    """Run all blocks of a file; fail at the end if the results differ from those in the file."""
    wanted = path.read_text(encoding="utf-8")
    found = "\n\n".join(_block(block, stage, verbs) for block in wanted.strip().split("\n\n")) + "\n"
    if os.environ.get("OTTLA_REWRITE") == "1":
        path.write_text(found, encoding="utf-8")
    assert found == wanted


def _block(block: str, stage: Narrator, verbs: Mapping[str, Verb]) -> str:
    """The block with its actual results."""
    lines = block.splitlines()
    script = lines[: lines.index(RULE)] if RULE in lines else lines
    for line in script:
        if not line.startswith("#"):
            perform(line, stage, verbs)
    if all(line.startswith("#") for line in script):
        return "\n".join(script)
    return "\n".join([*script, RULE, *(stage.told() or ["(nothing)"])])


def perform(line: str, stage: Narrator, verbs: Mapping[str, Verb]) -> None:
    """Run one command: a verb, words, and options as name=value."""
    verb, *rest = line.split()
    words = [word for word in rest if "=" not in word]
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    if verb in verbs:
        verbs[verb](*words, **options)
    elif verb in ("advance", "set_clock"):
        ms = int(words[0][:-1]) * 1000 if words[0].endswith("s") else int(words[0])
        getattr(stage, verb)(ms)
    else:
        assert verb in ("hold", "commit", "restart"), f"no such verb: {verb}"
        getattr(stage, verb)()
