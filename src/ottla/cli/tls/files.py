"""The files of a development authority: `ca.pem` and `ca.key`, and a file `NAME.pem` for each certificate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from ottla.cli.terminal.safe_files import PUBLIC_MODE, check_absent, make_directory, write, write_secret
from ottla.operations.errors import CommandError, WrongUsage
from ottla.testing.certificates import PemPair, issue, make_authority

AUTHORITY_FILE: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"
_NAME = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9._@-]{0,63}")  # X.509 allows 64 characters for a common name
_INIT = "`ottla tls init DIR` makes an authority, `--dir DIR` says where it is"


def new_authority(directory: Path, common_name: str, valid_for: timedelta | None, *, force: bool) -> Path:
    """Make an authority in the directory; return the path of its certificate."""
    certificate, key = directory / AUTHORITY_FILE, directory / AUTHORITY_KEY
    check_absent(certificate, key, force=force)
    try:
        made = make_authority(common_name, datetime.now(UTC), valid_for)
    except (ValueError, OverflowError) as error:
        raise WrongUsage(f"no certificate can be made: {error}") from None
    make_directory(directory)
    write_secret(key, made.key)
    write(certificate, made.certificates, PUBLIC_MODE)
    return certificate


def read_authority(directory: Path) -> PemPair:
    """Read the authority in the directory."""
    texts = []
    for name in (AUTHORITY_FILE, AUTHORITY_KEY):
        path = directory / name
        try:
            texts.append(path.read_text("latin-1"))
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}", _INIT) from None
    return PemPair(*texts)


def new_certificate(
    directory: Path,
    name: str,
    hosts: Sequence[str],
    *,
    client: bool,
    valid_for: timedelta | None = None,
    unit: str | None = None,
    force: bool,
) -> Path:
    """Issue a certificate of the authority in the directory; return the path of the file with chain and key."""
    if not _NAME.fullmatch(name) or f"{name}.pem" == AUTHORITY_FILE:
        raise WrongUsage(
            f"{name!r} cannot be the name of a certificate: it is at most 64 letters, digits, '.', '_', '@' and '-', "
            "and not ca"
        )
    path = directory / f"{name}.pem"
    check_absent(path, force=force)
    authority = read_authority(directory)
    now = datetime.now(UTC)
    try:
        made = issue(authority, name, hosts, now, client=client, server=bool(hosts), unit=unit, valid_for=valid_for)
    except (ValueError, OverflowError) as error:
        raise CommandError(f"no certificate can be made: {error}", _INIT) from None
    write_secret(path, made.text)
    return path
