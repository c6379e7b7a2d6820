"""Profiles in programs: clients of a secured cluster and its registry are made from a name."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from tests.support.processes.registry import record
from tests.support.profiles import profile_of, write_profiles

from ottla import AuthenticationError, Blocking, Profile, SchemaRegistry
from ottla.client.profiles import is_exposed, read_profiles, shown_url
from ottla.schemas.schema import SchemaSource
from ottla.testing.secure import SecureBroker


@pytest.fixture
def profiles(ottla_secure_broker: SecureBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of profiles of this user: alice, and somebody who does not know her password."""
    ottla_secure_broker.add_user("alice", "of alice")
    ottla_secure_broker.allow("alice", "All", topic="alice", prefixed=True)
    alice = profile_of(ottla_secure_broker, "alice")
    wrong = alice | {"sasl.password": "a guess"}
    for name, value in write_profiles(
        tmp_path, {"alice": alice, "wrong": wrong, "alone": {"bootstrap": "a:1"}}
    ).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "ottla" / "profiles.toml"


def test_clients_of_a_profile(profiles: Path) -> None:
    alice = Profile.named("alice")
    with Blocking(alice.client_options(client_id="mine")) as client:
        assert client.send("alice-orders", b"x").offset == 0
    registry = SchemaRegistry(alice.registry_options())
    id = registry.register("alice-orders-value", SchemaSource(record("R")))
    assert json.loads(registry.by_id(id).text) == json.loads(record("R"))
    with Blocking(Profile.named("wrong", profiles).client_options()) as client, pytest.raises(AuthenticationError):
        client.send("alice-orders", b"y")
    assert Profile.named("alone").client_options().security is None
    assert "of alice" not in repr(alice) + str(alice) + repr(alice.client_options()) + repr(alice.registry_options())


def test_a_file_of_kafkas_properties(ottla_secure_broker: SecureBroker, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    settings = ottla_secure_broker.java_settings()
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()) + "linger.ms=5\n")
    with Blocking(Profile.of_properties(path).client_options()) as client:
        assert client.admin.topics.names() == []


def test_what_is_wrong_is_a_value_error_that_says_where(profiles: Path) -> None:
    with pytest.raises(ValueError, match=f"there is no profile nobody in {profiles}"):
        Profile.named("nobody")
    with pytest.raises(ValueError, match="profile alone has no registry"):
        Profile.named("alone").registry_options()
    with pytest.raises(ValueError, match=r"none\.toml"):
        Profile.named("alice", profiles.with_name("none.toml"))
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        Profile.of_properties(profiles.with_name("none.properties"))
    profiles.write_text("[alice]\nsasl.mechanismus = 'PLAIN'\n")
    with pytest.raises(ValueError, match=r"profile alice: sasl\.mechanismus: there is no such security setting"):
        Profile.named("alice")
    profiles.write_text("[alice]\nbootstrap = 'a:1'\nregistry = 'http://a:2'\nboots = 'x'\n[bob]\nbootstrap = 'b:1'\n")
    assert Profile.named("bob").bootstrap == "b:1"
    alice = read_profiles(profiles)["alice"]
    for options in (alice.client_options, alice.registry_options):
        with pytest.raises(ValueError, match="profile alice: boots: there is no such setting"):
            options()


def test_a_file_that_others_can_read_is_warned_of(profiles: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Profile.named("alice")
        assert not caplog.records
        profiles.chmod(0o644)
        Profile.named("alice")
    assert f"chmod 600 {profiles}" in caplog.text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@host:1", "http://host:1"),
        ("http://user:sec@ret@host:1/path", "http://host:1/path"),
        ("http://user:sec,ret@host:1", "http://host:1"),
        ("https://user:secret@one:1,https://user:sec@ret@two:2", "https://one:1,https://two:2"),
        ("http://host:1/a@b", "http://host:1/a@b"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("url", "exposed"),
    [
        ("http://user:secret@host:1", True),
        ("http://me@example.com:secret@host:1", True),
        ("http://one:1,http://user:sec@ret@two:2", True),
        ("http://host:1", False),
        ("http://user@host:1", False),
        ("http://user:@host:1", False),
        ("http://host:1/a:b@c", False),
    ],
)
def test_a_password_in_the_url_of_the_registry_is_exposed(tmp_path: Path, url: str, exposed: bool) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(f'[one]\nregistry = "{url}"\n')
    path.chmod(0o644)
    assert is_exposed(path, read_profiles(path)) is exposed
    path.chmod(0o600)
    assert is_exposed(path, read_profiles(path)) is False
