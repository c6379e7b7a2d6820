"""A principal as it travels inside an Envelope request."""

from __future__ import annotations

from ottla.wire.message import Data
from ottla.wire.types import Bool, String


class DefaultPrincipalData(Data, versions="0", flexible="0+"):
    """The principal that a forwarded request came from. Preceded by its version as an int16."""

    type: String
    name: String
    token_authenticated: Bool
