"""The action log: who asked for which change, from where, and how it ended, as lines of the console's log.

Rules:
- A line tells the status of the answer, because a page that says no is not an error.
- Who has not signed in is only claimed to be somebody; the name is cut, and has no characters that cannot be seen.
- What succeeds, what fails, what strangers try and what the gate refuses have templates of their own: the log bounds
  the lines of each template (`observe/logs.py`), so that a flood of attempts does not hide what was done.
"""

from __future__ import annotations

import logging

from starlette.requests import Request

from ottla.console.call import PageCall
from ottla.console.parts.words import visible
from ottla.model import limits

log = logging.getLogger(__name__)


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
            log.info("somebody who claims to be %r at %s: %s failed with status %d", claimed, where, what, status)
    elif status < 400:
        log.info("%s at %s: %s ended with status %d", who, where, what, status)
    else:
        log.info("%s at %s: %s failed with status %d", who, where, what, status)


def note_refusal(request: Request, call: PageCall, status: int) -> None:
    """Note an action that has not passed the gate."""
    if request.method == "POST":
        template = "%s at %s: the gate refused %s with status %d"
        log.info(template, _who(call), call.host, _cut(call.path), status)


def _who(call: PageCall) -> str:
    return "nobody" if call.session is None else call.session.access.user or "everybody"


def _cut(text: str) -> str:
    return visible(text[: limits.CONSOLE_CELL_CHARS])
