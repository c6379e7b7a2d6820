"""`ottla` in every way to log in, with a file of properties and with a profile whose secrets are elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke
from tests.compat.conftest import Names
from tests.compat.security.secure_node import WAYS, SecureNode
from tests.server.security.secured import PASSWORDS


def as_alice(words: tuple[str, ...], topic: str) -> None:
    """She uses a topic of hers and is refused another one; no command shows her password."""

    def ottla(*more: str, code: int = 0) -> Run:
        done = invoke(*words, *more)
        assert done.code == code, done.err
        assert PASSWORDS["alice"] not in done.out + done.err
        return done

    ottla("topic", "create", topic)
    ottla("produce", topic, "a value")
    assert ottla("consume", topic, "-n", "1").out.rstrip().endswith("a value")
    assert all(each["group"].startswith("alice") for each in ottla("group", "list", "--json").json)
    assert "AUTHORIZATION_FAILED" in ottla("topic", "create", f"not-{topic}", code=1).err


@pytest.mark.parametrize("way", WAYS)
def test_a_file_of_properties(way: str, secure: SecureNode, new_name: Names, tmp_path: Path) -> None:
    listener, mechanism = WAYS[way]
    security = secure.security(listener, mechanism)
    path = security.command_config(tmp_path / "client.properties")
    path.write_text(f"{path.read_text()}bootstrap.servers={secure.at(listener)}\n")
    as_alice(("--command-config", str(path)), new_name("alice"))


@pytest.mark.parametrize("place", ["env", "file"])
@pytest.mark.parametrize("way", WAYS)
def test_a_profile(
    way: str, place: str, secure: SecureNode, new_name: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password is in the environment, or in a file."""
    listener, mechanism = WAYS[way]
    security = secure.security(listener, mechanism)
    (tmp_path / "password").write_text(security.password)
    monkeypatch.setenv("PASSWORD_OF_ALICE", security.password)
    settings = security.java_tls() | {"bootstrap": secure.at(listener)}
    if mechanism:
        secret = "env:PASSWORD_OF_ALICE" if place == "env" else f"file:{tmp_path / 'password'}"
        settings |= {"sasl.mechanism": mechanism, "sasl.username": security.user, "sasl.password": secret}
    profiles = tmp_path / "ottla" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text("[alice]\n" + "".join(f'"{name}" = {json.dumps(text)}\n' for name, text in settings.items()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    as_alice(("--profile", "alice"), new_name("alice"))
