"""The TLS of a listener when its settings change, or its files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ottla.model.config import Config
from ottla.server.security.listener_tls import ListenerTls
from ottla.server.settings.configs import Configs
from ottla.server.settings.listener_config import listener_config
from ottla.testing.certificates import issue, make_authority


def write(path: Path, name: str) -> None:
    now = datetime.now(UTC)
    authority = make_authority("ca", now, None)
    made = issue(authority, name, ["localhost"], now, client=True, server=True, unit=None, valid_for=None)
    path.write_text(made.text)


def config_of(path: Path) -> Config:
    settings = {
        "listeners": "SSL://127.0.0.1:9092",
        "ssl.keystore.location": str(path),
        "ssl.keystore.type": "PEM",
    }
    return listener_config(Configs(settings).node, "SSL")


def subject(tls: ListenerTls) -> str:
    assert tls._now is not None
    (names,) = tls._now.names
    return names.subject


def test_a_file_that_comes_after_its_setting_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "one.pem", "one")
    tls = ListenerTls("SSL", config_of(tmp_path / "one.pem"), "none")
    later = config_of(tmp_path / "two.pem")
    for _ in range(3):
        tls.refresh(later, "none")
        assert subject(tls) == "CN=one"
    assert caplog.text.count("keeps its old certificate") == 1
    write(tmp_path / "two.pem", "two")
    tls.refresh(later, "none")
    assert subject(tls) == "CN=two"


def test_a_file_that_is_half_written_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "one.pem"
    write(path, "one")
    tls = ListenerTls("SSL", config_of(path), "none")
    for _ in range(2):
        path.write_text("nonsense")
        for _ in range(2):
            tls.refresh(config_of(path), "none")
            assert subject(tls) == "CN=one"
        write(path, "another")
        tls.refresh(config_of(path), "none")
        assert subject(tls) == "CN=another"
        write(path, "one")
        tls.refresh(config_of(path), "none")
    assert caplog.text.count("keeps its old certificate") == 2
