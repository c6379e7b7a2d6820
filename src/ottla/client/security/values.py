"""Values of security settings by one of several names, for those who read them."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.security.secret import Secret, SecretMissing


class SettingValues:
    """Settings by name. An empty text counts as not given, except where a setting says otherwise."""

    def __init__(self, settings: Mapping[str, str | Secret]) -> None:
        self._settings = settings

    def name_of(self, *names: str) -> str | None:
        """Return the first of the names that is given."""
        return next((name for name in names if self._settings.get(name)), None)

    def text(self, *names: str) -> str:
        """Return the value of the first of the names that is given, or an empty text."""
        name = self.name_of(*names)
        if name is None:
            return ""
        given = self._settings[name]
        return given.reveal() if isinstance(given, Secret) else given.strip()

    def secret(self, *names: str) -> Secret | None:
        """Return the secret of the first of the names that is given."""
        name = self.name_of(*names)
        return None if name is None else Secret.of(self._settings[name])

    def revealed(self, *names: str) -> str:
        """Return the text of a secret that is read now; raise ValueError if it is not there."""
        secret = self.secret(*names)
        try:
            return "" if secret is None else secret.reveal()
        except SecretMissing as error:
            raise ValueError(f"{self.name_of(*names)}: {error}") from None

    def items(self, name: str) -> tuple[str, ...]:
        """Return the parts of a list."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def raw(self, name: str) -> str | None:
        """Return a value as it is given, also an empty one; None if it is not given."""
        given = self._settings.get(name)
        return None if given is None else str(given).strip()
