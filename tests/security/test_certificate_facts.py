"""What a certificate says, also where its key is of a kind that only OpenSSL reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from ottla.security.certificate_facts import read_certificates
from ottla.server.security.listener_tls import ListenerTls
from ottla.server.settings.configs import Configs
from ottla.server.settings.listener_config import listener_config
from ottla.testing.certificates import issue, make_authority

# Made by OpenSSL, with the curve prime239v1.
RARE_CURVE = """\
-----BEGIN EC PRIVATE KEY-----
MHECAQEEHlTWfz+cisr9baCg+KavXhJswhx63KSJPZa9eJT7a6AKBggqhkjOPQMB
BKFAAz4ABD3z+NwB7R9Y/CS2Wis3CiCt+RNFK4U2YknmHBz/Ln3MVGS2J8P7g+Ne
76f/SWAI3rKvtJRw2zCHP3boiA==
-----END EC PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBbjCCARmgAwIBAgIUQchBomrp2aKuwYDu7n6cd5YG5JswCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFY3VydmUwIBcNMjYxMTE5MDI0MDQyWhgPMjEyNjEwMjYwMjQw
NDJaMBAxDjAMBgNVBAMMBWN1cnZlMFUwEwYHKoZIzj0CAQYIKoZIzj0DAQQDPgAE
PfP43AHtH1j8JLZaKzcKIK35E0UrhTZiSeYcHP8ufcxUZLYnw/uD417vp/9JYAje
sq+0lHDbMIc/duiIo1MwUTAdBgNVHQ4EFgQU41+LBlm+77g6rS8U9JoXPdA95AUw
HwYDVR0jBBgwFoAU41+LBlm+77g6rS8U9JoXPdA95AUwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNDADBAAh4i1eepAoxbT+boI9pVmVkauZj99D9LqiaM+Uue
C6cCHlt8r/j9W8wPq1YYyER3XRpbd416z4LVFqgSIXzGpQ==
-----END CERTIFICATE-----
"""
SHOWN = "a key that is not known here"


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    path = tmp_path / "rare.pem"
    path.write_text(RARE_CURVE)
    return path


def test_kinds_of_keys() -> None:
    now = datetime.now(UTC)
    usual = issue(make_authority("ca", now, None), "a", ["h"], now, client=True, server=True, unit=None, valid_for=None)
    assert read_certificates(usual.text)[0].key == "EC secp256r1"
    (facts,) = read_certificates(RARE_CURVE)
    assert (facts.subject, facts.key) == ("CN=curve", SHOWN)


def test_a_listener_uses_it(rare: Path) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(rare),
        "ssl.keystore.type": "PEM",
    }
    tls = ListenerTls("SSL", listener_config(Configs(settings).node, "SSL"), "none")
    tls.look_at_time(0)


def test_tools_show_it(rare: Path, tmp_path: Path) -> None:
    shown = invoke("tls", "show", str(rare))
    assert shown.code == 0 and SHOWN in shown.out
    config = tmp_path / "node.properties"
    config.write_text(
        f"listeners=SSL://127.0.0.1:0\nsecurity.inter.broker.protocol=SSL\nssl.keystore.location={rare}\n"
    )
    assert "holds a private key" in invoke("security", "audit", "--config", str(config)).out
