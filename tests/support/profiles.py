"""Profiles of the users of a secured broker: the file that commands and programs read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ottla.security.development import registry_client_settings
from ottla.testing.secure import SecureBroker


def write_profiles(directory: Path, profiles: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Write the profiles of somebody; return the environment in which they are this user's."""
    path = directory / "ottla" / "profiles.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    lines: list[str] = []
    for name, settings in profiles.items():
        lines += [f"[{name}]", *(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in settings.items())]
    path.write_text("\n".join(lines) + "\n")
    return {"XDG_CONFIG_HOME": str(directory)}


def profile_of(broker: SecureBroker, user: str) -> dict[str, str]:
    """The profile of a user of this broker and its registry."""
    places = {"bootstrap": broker.bootstrap, "registry": broker.registry.url}
    return {**places, **broker.security_of(user), **registry_client_settings(str(broker.authority))}
