"""The action log: who asked for which change, from where, and how it ended, as lines of the console's log.

Rules:
- A line tells the status of the answer, because a page that says no is not an error.
- Who has not signed in is only claimed to be somebody; the name is cut, and has no characters that cannot be seen.
- It is written whatever the level of the log is: `ottla up` starts the console with WARNING.
- What those have done who may act is written whole (`observe/logs.py`), so that harmless actions do not hide one that
  is not. It is bounded by the requests that a session may have at once, and by the length of a line.
- What strangers try and what the gate refuses may be a flood: each template is written a few times, then counted.
"""

from __future__ import annotations

from starlette.requests import Request

from ottla.console.call import PageCall
from ottla.console.parts.words import visible
from ottla.model import limits
from ottla.observe.logs import complete_log

log = complete_log(__name__)
_attempts = log.getChild("attempts")


def note_action(request: Request, call: PageCall, status: int) -> None:
    """Note how an action has ended."""
    if request.method != "POST":
        return
    who, where, what = _who(call), call.host, _cut(call.path)
    if call.session is None:
        claimed = _cut(call.form.get("user", ""))
        if status < 400:
            log.info("%s, who was not signed in, at %s: %s ended with status %d", claimed, where, what, status)
        else:
            _attempts.info("somebody who claims to be %r at %s: %s failed with status %d", claimed, where, what, status)
    elif status < 400:
        log.info("%s at %s: %s ended with status %d", who, where, what, status)
    else:
        log.info("%s at %s: %s failed with status %d", who, where, what, status)


def note_refusal(request: Request, call: PageCall, status: int) -> None:
    """Note an action that has not passed the gate."""
    if request.method == "POST":
        template = "%s at %s: the gate refused %s with status %d"
        _attempts.info(template, _who(call), call.host, _cut(call.path), status)


def note_reason(call: PageCall, what: str, reason: str) -> None:
    """Note that somebody has aborted something, and the reason that was given."""
    log.info("%s at %s: %s was aborted; reason: %s", _who(call), call.host, _cut(what), visible(reason))


def _who(call: PageCall) -> str:
    return "nobody" if call.session is None else call.session.access.user or "everybody"


def _cut(text: str) -> str:
    return visible(text[: limits.CONSOLE_CELL_CHARS])
