"""Secret: a password, key or token that no text shows, as Kafka's `Password`."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from ottla.model.limits import SECRET_FILE_BYTES_MAX

HIDDEN = "[hidden]"
_ENV, _FILE = "env:", "file:"


class SecretMissing(ValueError):
    """The environment variable or the file that a secret names does not exist."""


class Secret:
    """A secret text: given itself, or where it is (`env:NAME`, `file:PATH`).

    Its `repr`, `str` and `format` are `[hidden]`. Pickled, the text is encoded, so that it is not found in a dump by
    reading or searching; it is not encrypted. A secret of a variable or file is pickled as the name of that.
    """

    __slots__ = ("_given",)

    def __init__(self, given: str) -> None:
        self._given = given

    @classmethod
    def of(cls, given: str | Secret) -> Secret:
        return given if isinstance(given, Secret) else cls(given)

    @property
    def is_literal(self) -> bool:
        """Whether the text itself was given, and not where it is."""
        return not self._given.startswith((_ENV, _FILE))

    def reveal(self) -> str:
        """Return the text. A variable or a file is read anew with each call, so that it may change."""
        given = self._given
        if given.startswith(_ENV):
            name = given.removeprefix(_ENV)
            if name not in os.environ:
                raise SecretMissing(f"the environment variable {name}, which should hold a secret, is not set")
            return os.environ[name]
        if given.startswith(_FILE):
            path = given.removeprefix(_FILE)
            return _read(path)
        return given

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._given == other._given

    def __hash__(self) -> int:
        return hash(self._given)

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (base64.b85encode(self._given.encode()),)


class LiteralSecret(Secret):
    """What a person has typed, or a client has sent: never the name of a variable or a file of this process."""

    __slots__ = ()

    @property
    def is_literal(self) -> bool:
        return True

    def reveal(self) -> str:
        return self._given

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled_literal, (base64.b85encode(self._given.encode()),)


class UserAndPassword(Secret):
    """`user:password`; where the password is a variable or a file, it is read when it is needed, and not before."""

    __slots__ = ("_password",)

    def __init__(self, user: str, password: Secret) -> None:
        super().__init__(f"{user}:{password._given}")
        self._password = user, password

    def reveal(self) -> str:
        user, password = self._password
        return f"{user}:{password.reveal()}"

    def __reduce__(self) -> tuple[object, ...]:
        return UserAndPassword, self._password


def _unpickled(encoded: bytes) -> Secret:
    return Secret(base64.b85decode(encoded).decode())


def _unpickled_literal(encoded: bytes) -> LiteralSecret:
    return LiteralSecret(base64.b85decode(encoded).decode())


def _read(path: str) -> str:
    """Read the file of a secret. Raises SecretMissing if it cannot be read, is too long, or is not text."""
    try:
        with Path(path).open("rb") as file:
            found = file.read(SECRET_FILE_BYTES_MAX + 1)
        if len(found) > SECRET_FILE_BYTES_MAX:
            why = f"it is longer than {SECRET_FILE_BYTES_MAX} bytes"
        else:
            return found.decode().removesuffix("\n")
    except OSError as error:
        why = error.strerror or str(error)
    except UnicodeDecodeError:
        why = "it is not text"
    raise SecretMissing(f"the file {path}, which should hold a secret, cannot be read: {why}") from None
