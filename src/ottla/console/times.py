"""Times as people type them into forms."""

from __future__ import annotations

from ottla.console.refusals import WrongInput
from ottla.operations.formats import parse_time_ms


def time_of(text: str) -> int:
    """Milliseconds since 1970 from that number, or from an ISO date or time, which is local unless it names a zone.
    Raises WrongInput.
    """
    try:
        return parse_time_ms(text.strip()[:40])
    except (ValueError, OSError) as error:
        raise WrongInput(str(error)) from None
