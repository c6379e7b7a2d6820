"""Which login module a mechanism has in `sasl.jaas.config`, and which options that module reads.

Java finds a class that does not exist only when it is loaded, and reads no option that it does not know. A node would
then start, and nobody could log in, so all of this is looked at before it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.security.sasl.jaas import (
    KERBEROS_MODULE,
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    PLAIN_USER,
    SCRAM_MODULE,
    InvalidJaas,
    LoginModule,
)

_MODULES: Final = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTHBEARER_MODULE,
    "GSSAPI": KERBEROS_MODULE,
}
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    PLAIN_MODULE: ("username", "password"),
    SCRAM_MODULE: ("username", "password", "tokenauth"),
}
_SIMILARITY = 0.75


def check_login_module(mechanism: str, module: LoginModule, *, logs_in: bool) -> None:
    """Raise InvalidJaas if a mechanism cannot work with this login module. `logs_in`: the node itself logs in with it,
    to other nodes, so it has to name a user and a password.
    """
    fitting = _MODULES.get(mechanism)
    if fitting is not None and module.name != fitting:
        raise InvalidJaas(f"the login module of {mechanism} is {fitting}, not {module.name[:100]!a}")
    known = _OPTIONS.get(module.name)
    if known is None:
        return
    for name, meant in _misspelt(module, known):
        raise InvalidJaas(f"{module.name} has no option {name[:100]!a}, did you mean {meant}?")
    if logs_in:
        for name in ("username", "password"):
            if not module.options.get(name):
                raise InvalidJaas(f"the node logs in to others with {mechanism}, and {module.name} lacks {name}")


def _misspelt(module: LoginModule, known: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield unknown options that look like misspelt known ones, with what is meant. Other unknown options are ignored,
    as in Java.
    """
    is_plain = module.name == PLAIN_MODULE
    unknown = [name for name in module.options if name not in known and not (is_plain and name.startswith(PLAIN_USER))]
    if not unknown:
        return
    from difflib import get_close_matches  # imported here because few nodes need it and a start should be quick

    for name in unknown:
        near = get_close_matches(name, known, n=1, cutoff=_SIMILARITY)
        if near:
            yield name, near[0]
        elif is_plain and get_close_matches(name.partition("_")[0] + "_", (PLAIN_USER,), cutoff=_SIMILARITY):
            yield name, f"{PLAIN_USER}NAME"
