"""Read property files of users: everything that is wrong with them is an error of one line, with a hint.

No error quotes a file: a path that was mixed up may be that of a password.
"""

from __future__ import annotations

import os

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import declared
from ottla.model.limits import SETTINGS_FILE_BYTES_MAX
from ottla.model.properties import PropertiesError
from ottla.model.settings_file import parse_settings
from ottla.operations.errors import CommandError

_HINT = "a setting is a line NAME=VALUE, as in Kafka's server.properties; is this the right file?"


def read_settings(path: str | os.PathLike[str]) -> dict[str, str]:
    """The settings in a server.properties file."""
    name = os.fspath(path)
    if not name:
        raise CommandError("the name of the properties file is empty", "--data DIR starts a node without a file")
    try:
        with open(name, "rb") as file:
            data = file.read(SETTINGS_FILE_BYTES_MAX + 1)
    except IsADirectoryError:
        raise CommandError(
            f"{name} is a directory and no properties file", f"--data {name} keeps a node's data there"
        ) from None
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}", "give the path of a server.properties") from None
    if len(data) > SETTINGS_FILE_BYTES_MAX:
        raise CommandError(f"{name} is larger than {SETTINGS_FILE_BYTES_MAX} bytes: it is no properties file", _HINT)
    try:
        found = parse_settings(data, BROKER_SETTINGS)
    except PropertiesError as error:
        raise CommandError(f"{name}: {error}", _HINT) from None
    if found and not any(declared(each, BROKER_SETTINGS) for each in found):
        raise CommandError(f"{name} sets nothing that a node knows", _HINT)
    return found
