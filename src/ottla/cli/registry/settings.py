"""The settings of `ottla registry`: those of the file that `--config` names, and what the command line says instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.registry.security.settings import RegistrySettings

_LISTENERS = "listeners"


def read_registry_settings(
    context: typer.Context, file: Path | None, options: Mapping[str, tuple[str, str | None]]
) -> RegistrySettings:
    """Read and check the settings. `options` has, by parameter, the name of a setting and the text of the option: it
    counts if it is on the command line, or if the file does not have the setting.
    """
    from ottla.registry.security.settings import InvalidRegistrySettings, is_of_registry, registry_settings

    values = {} if file is None else values_in(file)
    if values and not is_of_registry(values):  # and not quoted: it may be the file of a password
        raise CommandError(f"{file} sets nothing that a registry knows", "docs/schemas.md has a registry's settings")
    scheme = values.get(_LISTENERS, "").partition("://")[0].strip() or "http"
    for parameter, (name, text) in options.items():
        source = context.get_parameter_source(parameter)
        is_given = source is not None and source.name == "COMMANDLINE"
        if text is not None and (is_given or name not in values):
            values[name] = f"{scheme}://{text}" if name == _LISTENERS and "://" not in text else text
    try:
        return registry_settings(values)
    except InvalidRegistrySettings as error:
        raise CommandError(str(error) if file is None else f"{file}: {error}") from None


def values_in(file: Path) -> dict[str, str]:
    """Return what the file says, unchecked."""
    from ottla.model.limits import SETTINGS_FILE_BYTES_MAX
    from ottla.model.properties import PropertiesError, parse_entries

    try:
        with file.open("rb") as opened:
            text = opened.read(SETTINGS_FILE_BYTES_MAX).decode()
        return {each.name: each.value for each in parse_entries(text)}
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from None
    except (PropertiesError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} is no file of properties: {error}") from None
