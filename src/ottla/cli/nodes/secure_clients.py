"""Settings of clients for a cluster of `ottla up --secure`: as files, and as a text to copy from.

| file | for |
|---|---|
| `client.properties` | Java, Kafka's tools, and `ottla --command-config`; also the schema registry's address |
| `librdkafka.properties` | librdkafka and what is built on it: confluent-kafka, kcat (`-F`) |
| `registry-client.properties` | confluent-kafka's SchemaRegistryClient |
| `schema-registry.properties` | the schema registry beside the nodes, which logs in to them as `node` |

A file that is there is not changed, because its addresses and passwords may have been edited. Only the settings of the
registry are added to a `client.properties` that has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ottla.cli.nodes.secure_files import CLIENT_FILE, LIBRDKAFKA_FILE, REGISTRY_CLIENT_FILE, SecureFiles
from ottla.cli.terminal.plain import print_warning
from ottla.cli.terminal.safe_files import make_directory, write_secret
from ottla.security.development import (
    ADMIN,
    CLIENT_LISTENER,
    MECHANISM,
    NODE,
    confluent_registry_settings,
    java_settings,
    librdkafka_settings,
    own_settings,
    registry_client_settings,
    registry_settings,
)

REGISTRY_FILE: Final = "schema-registry.properties"
_URL: Final = "schema.registry.url"


class SecureClients:
    """The files of clients; `bootstrap` are the addresses of the brokers, `registry` is the URL of the registry."""

    def __init__(self, files: SecureFiles, bootstrap: str, registry: str | None = None) -> None:
        self._files = files
        self._bootstrap = bootstrap
        self._registry = registry

    @property
    def client_file(self) -> Path:
        return self._files.folder / CLIENT_FILE

    @property
    def registry_client_file(self) -> Path:
        return self._files.folder / REGISTRY_CLIENT_FILE

    def write(self) -> None:
        """Write the files that are missing."""
        authority, password = str(self._files.authority), self._files.password(ADMIN)
        at = {"bootstrap.servers": self._bootstrap}
        of_registry = self._of_registry()
        _write(self.client_file, at | java_settings(authority, ADMIN, password) | of_registry)
        _write(self._files.folder / LIBRDKAFKA_FILE, at | librdkafka_settings(authority, ADMIN, password))
        if self._registry is None:
            return
        _write(self.registry_client_file, confluent_registry_settings(self._registry, authority, ADMIN, password))
        text = self.client_file.read_text()
        if _URL not in text:
            write_secret(self.client_file, f"{text.rstrip()}\n{_lines(of_registry)}")
        elif f"{_URL}={self._registry}\n" not in text:
            print_warning(f"{self.client_file} has another {_URL} than {self._registry}: it is not changed")

    def write_registry(self, address: str) -> Path:
        """Write the file of the registry, which listens at this address, and its certificate, unless they are there."""
        path = self._files.folder / REGISTRY_FILE
        certificate = self._files.registry_certificate(address)
        own = registry_settings(str(self._files.authority), str(certificate), self._files.password(NODE))
        _write(path, {"listeners": f"https://{address}"} | own)
        return path

    def save_profile(self, name: str) -> None:
        """Add a profile with this name to the file of profiles of this user; one that is there stays."""
        from ottla.cli.profile.files import read_profiles
        from ottla.client.profiles import profiles_path

        path = profiles_path()
        if name in read_profiles(path):
            print_warning(f"there is a profile {name} in {path} already: it is not changed")
            return
        make_directory(path.parent)
        former = path.read_text() if path.exists() else ""
        settings = {"bootstrap": self._bootstrap, **self._own(), **self._of_registry()}
        table = "".join(f'"{each}" = {_toml(value)}\n' for each, value in settings.items())
        write_secret(path, f"{former.rstrip()}\n\n".lstrip("\n") + f"[{_toml(name)}]\n{table}")

    def text(self, *, with_password: bool) -> str:
        """The settings for Java, librdkafka and Python, to copy from."""
        password = self._files.password(ADMIN) if with_password else f"(in {self._files.password_file(ADMIN)})"
        python = ", ".join(f'"{name}": "{value}"' for name, value in self._own().items())
        tools = f"kafka-topics --command-config {self.client_file} --bootstrap-server {self._bootstrap} --list"
        lines = [
            f"user      {ADMIN}",
            f"password  {password}",
            "",
            f"ottla     ottla --command-config {self.client_file} topic list",
            f"Java      {self.client_file}: for Properties.load, and for Kafka's tools:",
            f"          {tools}",
            f"librdkafka, confluent-kafka, kcat -F: {self._files.folder / LIBRDKAFKA_FILE}",
            f"Python    Blocking({self._bootstrap!r}, security={{{python}}})",
            f"aiokafka  security_protocol={CLIENT_LISTENER!r}, sasl_mechanism={MECHANISM!r},",
            f"          sasl_plain_username={ADMIN!r}, sasl_plain_password=...,",
            f"          ssl_context=create_ssl_context(cafile={str(self._files.authority)!r})",
        ]
        if self._registry is not None:
            lines += [
                f"registry  {self._registry}, with the same users: {self.client_file} has its settings, too;",
                f"          for confluent-kafka's SchemaRegistryClient: {self.registry_client_file}",
            ]
        return "\n".join(lines)

    def _own(self) -> Mapping[str, str]:
        return own_settings(str(self._files.authority), ADMIN, f"file:{self._files.password_file(ADMIN)}")

    def _of_registry(self) -> dict[str, str]:
        if self._registry is None:
            return {}
        return {_URL: self._registry, **registry_client_settings(str(self._files.authority))}


def registry_address_in(files: SecureFiles) -> str | None:
    """The address that the registry's file says, if there is one."""
    from ottla.cli.registry.settings import values_in

    path = files.folder / REGISTRY_FILE
    if not path.exists():
        return None
    return values_in(path).get("listeners", "").rpartition("://")[2].strip() or None


def _write(path: Path, settings: Mapping[str, str]) -> None:
    if not path.exists():
        write_secret(path, _lines(settings))


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _toml(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)  # a basic string of TOML has JSON's escapes
