"""Keys of an AWS profile: the file `~/.aws/credentials`, which obstore does not read.

Profiles that get their keys from elsewhere (`role_arn`, `sso_session`, `credential_process`) are refused with their
name: roles of machines, of containers and of Kubernetes come from obstore itself.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.model import limits
from ottla.tier.stores.errors import StoreDenied

if TYPE_CHECKING:
    from obstore.store import S3Credential

DEFAULT = "default"
_ELSEWHERE = ("role_arn", "sso_session", "sso_start_url", "credential_process")
# Any of these gives keys without a profile.
_WITHOUT_PROFILE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)


class AwsProfile:
    """A profile in its files; it is read again from time to time, so keys may be replaced."""

    def __init__(self, name: str, credentials: Path, config: Path) -> None:
        self._name = name
        self._credentials = credentials
        self._config = config

    def __call__(self) -> S3Credential:
        """What obstore calls when it needs keys. Raises `StoreDenied` if there are none."""
        found = self._section(self._credentials, self._name) | self._configured()
        if (key := found.get("aws_access_key_id")) is None or (secret := found.get("aws_secret_access_key")) is None:
            raise StoreDenied(f"the AWS profile {self._name!r} has no keys in {self._credentials}", self._hint(found))
        token = found.get("aws_session_token")
        again = datetime.now(UTC) + timedelta(seconds=limits.STORE_PROFILE_S)
        return {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": again}

    @property
    def region(self) -> str | None:
        return self._configured().get("region")

    def _configured(self) -> dict[str, str]:
        return self._section(self._config, self._name if self._name == DEFAULT else f"profile {self._name}")

    def _section(self, path: Path, name: str) -> dict[str, str]:
        parser = configparser.ConfigParser(interpolation=None, default_section="\0")
        try:
            parser.read(path, "utf-8")
        except (configparser.Error, UnicodeDecodeError):
            raise StoreDenied(f"{path} cannot be read: it has no form of AWS' files") from None
        return dict(parser[name]) if parser.has_section(name) else {}

    def _hint(self, found: Mapping[str, str]) -> str:
        elsewhere = next((each for each in _ELSEWHERE if each in found), None)
        if elsewhere is None:
            return "name another one by profile= or AWS_PROFILE"
        return f"profiles with {elsewhere} are not supported: give the role to the machine, or set AWS_ACCESS_KEY_ID"


def profile_of(named: str | None, environment: Mapping[str, str] = os.environ) -> AwsProfile | None:
    """The profile that was named, here or by AWS_PROFILE; else the default one, if nothing else has keys; else None."""
    home = Path(environment.get("HOME", "/nonexistent")) / ".aws"
    credentials = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE", str(home / "credentials")))
    config = Path(environment.get("AWS_CONFIG_FILE", str(home / "config")))
    if named is None and any(environment.get(name) for name in _WITHOUT_PROFILE):
        return None
    name = named or environment.get("AWS_PROFILE")
    if name is None and not credentials.is_file():
        return None
    return AwsProfile(name or DEFAULT, credentials, config)
