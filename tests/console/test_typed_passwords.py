"""What a visitor types is a password, never the name of a variable or a file of the console's process."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tests.console.consoles import Visitor, running_console

from ottla.client.registry import RegistryOptions
from ottla.client.security.security import as_security
from ottla.console.options import ConsoleOptions
from ottla.testing.secure import SecureBroker


def test_a_reference_to_the_password_of_somebody_signs_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password = broker.security["sasl.password"]
        kept = tmp_path / "admin.password"
        kept.write_text(password)
        monkeypatch.setenv("ADMIN_PASSWORD", password)
        options = ConsoleOptions(broker.bootstrap, port=0, security=as_security(broker.security), signs_in=True)
        with running_console(options) as console:
            for typed in (f"file:{kept}", "env:ADMIN_PASSWORD", "file:/dev/zero"):
                shown = Visitor(console.url).send("/sign-in", "/sign-in", user="admin", password=typed)
                assert (shown.status, "refuses this user or password" in shown.words) == (403, True)
            assert Visitor(console.url).send("/sign-in", "/sign-in", user="admin", password=password).status == 200


def test_what_is_typed_goes_to_the_registry_and_to_other_processes_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the operator")
    with SecureBroker(tmp_path / "data") as broker:
        options = ConsoleOptions(
            broker.bootstrap,
            security=as_security(broker.security),
            registry=RegistryOptions.of("http://127.0.0.1:1"),
            signs_in=True,
        )
        registry = options.registry_of("env", "SECRET")
        clients = pickle.loads(pickle.dumps(options.client("alice", "env:SECRET")))
    assert registry is not None and not isinstance(registry.auth, str)
    assert pickle.loads(pickle.dumps(registry.auth)).reveal() == "env:SECRET"
    assert clients.known_security.sasl.password.reveal() == "env:SECRET"
