"""docs/security.md: the example of a whole node runs as it is written, and so does the recipe for aiokafka."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import invoke
from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.model.properties import parse_entries
from ottla.testing.broker import EmbeddedBroker

PAGE = Path(__file__).parents[3] / "docs" / "security.md"


def block(kind: str, after: str) -> str:
    """The first block of a kind behind a line of the page."""
    _, found, rest = PAGE.read_text().partition(f"\n{after}")
    shown = re.search(rf"```{kind}\n(.*?)```", rest, re.S)
    assert found and shown, after
    return shown[1]


def test_the_example_of_a_node_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("tls", "init", "tls").code == 0
    assert invoke("tls", "issue", "broker1", "--host", "localhost", "--client", "--dir", "tls").code == 0
    clients, controllers = free_ports(2)
    places = {"broker1.example:9092": f"localhost:{clients}", "broker1.example:9093": f"localhost:{controllers}"}
    text = block("properties", "## Listeners")
    for old, new in {**places, "/etc/ottla": str(tmp_path / "tls"), "/var/lib/ottla": str(tmp_path / "data")}.items():
        assert old in text
        text = text.replace(old, new)
    Path("server.properties").write_text(text)
    lines = block("sh", "## Listeners")
    users = re.search(r"<<'END'\n(.*?)END", lines, re.S)
    assert users and "ottla format server.properties --add-scram @users\n" in lines
    Path("users").write_text(users[1])
    assert "chmod 600 users server.properties\nmkdir -m 700 /var/lib/ottla" in lines
    Path("server.properties").chmod(0o600)
    Path("data").mkdir(0o700)
    formatted = invoke("format", "server.properties", "--add-scram", "@users")
    assert formatted.code == 0, formatted.err
    settings = {each.name: each.value for each in parse_entries(text)}
    place = f"localhost:{clients}"
    with EmbeddedBroker(tmp_path / "data", settings):
        assert not [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")], caplog.text
        own = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": "tls/ca.pem",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": "admin-secret",
        }
        with Blocking(place, security=own) as client:
            client.admin.topics.create("orders", partitions=1)
            _run_recipe(tmp_path, place)
            assert [each.value for each in client.read("orders")] == [b"hello"]
    assert invoke("security", "audit", "--config", "server.properties").code == 0, "nothing is open to others"


def _run_recipe(directory: Path, bootstrap: str) -> None:
    """Send a record with aiokafka, as the page does."""
    folder = directory / "safe" / "secure"
    folder.mkdir(parents=True)
    (folder / "ca.pem").write_text((directory / "tls" / "ca.pem").read_text())
    (folder / "admin.password").write_text("admin-secret\n")
    names: dict[str, Any] = {}
    exec(block("python", "### Clients").replace("localhost:9092", bootstrap), names)
    asyncio.run(asyncio.wait_for(names["main"](), WAIT_S))
