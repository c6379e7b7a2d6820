"""The principal of a forwarded request, as it travels in an Envelope: Kafka's default encoding."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from ottla.security.principal import Principal
from ottla.wire import compile
from ottla.wire.journal.principal import DefaultPrincipalData
from ottla.wire.types import WireError

_HIGHEST_VERSION = 0
_VERSION = Struct(">h")


def principal_bytes(principal: Principal) -> bytes:
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.token_authenticated
    )
    return _VERSION.pack(_HIGHEST_VERSION) + compile.encode(data, _HIGHEST_VERSION)


def read_principal(data: bytes) -> Principal | None:
    """Return the principal, or None if the bytes are not one."""
    try:
        (version,) = _VERSION.unpack_from(data)
        if not 0 <= version <= _HIGHEST_VERSION:
            return None
        found = compile.decode(DefaultPrincipalData, version, data[_VERSION.size :])
    except (StructError, WireError, IndexError, UnicodeDecodeError):
        return None
    return Principal(found.type, found.name, found.token_authenticated)
