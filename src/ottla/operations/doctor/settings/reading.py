"""Read the settings of a node from its file, with the certificates that the file names."""

from __future__ import annotations

from pathlib import Path

from ottla.client.errors import AuthenticationError
from ottla.client.security.stores import read_store
from ottla.model.errors import ApiError
from ottla.operations.doctor.settings.node_settings import SettingsSeen
from ottla.operations.security.sources import keystores_of
from ottla.operations.settings_file import read_settings
from ottla.security.certificate_facts import CertificateFacts, read_certificates


def read_file(path: Path) -> SettingsSeen:
    """Read a server.properties. Raises CommandError if it is none."""
    values = read_settings(path)
    certificates: list[tuple[str, CertificateFacts]] = []
    unreadable = []
    try:
        stores = keystores_of(values)
    except ApiError:
        stores = []  # a check of its own says that a value is wrong
    for store in stores:
        try:
            certificates += [(store.path, each) for each in read_certificates(read_store(store).certificates.encode())]
        except (AuthenticationError, OSError, ValueError):
            unreadable.append(store.path)
    return SettingsSeen(values, path=path, certificates=tuple(certificates), unreadable=tuple(unreadable))
