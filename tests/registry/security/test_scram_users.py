"""A registry whose users have SCRAM passwords in the cluster, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.registry.security.test_secure_registry import ASKS
from tests.registry.security.web import AUTHORIZER, ask, basic, secure_broker, store_settings
from tests.server.security.secured import Certificates
from tests.support.waiting import until

from ottla.client.admin import Admin
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model import limits
from ottla.registry.leader import ElectionOptions
from ottla.registry.store import StoreOptions
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

MECHANISMS = {each.sasl_name: each for each in (ScramMechanism.SHA_256, ScramMechanism.SHA_512)}
PASSWORD = "carol's: pässword"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[EmbeddedBroker]:
    more = AUTHORIZER | {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}
    with secure_broker(tmp_path_factory.mktemp("broker"), certificates, **more) as broker:
        yield broker


@pytest.mark.parametrize("name", MECHANISMS)
def test_scram_users_are_accepted(
    broker: EmbeddedBroker, certificates: Certificates, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PASSWORD_CONFIRMED_MS", 500)
    security = {key.removeprefix("kafkastore."): text for key, text in store_settings(certificates).items()}

    async def change(password: str | None) -> None:
        async with Admin(ClientOptions(parse_bootstrap(broker.bootstrap), security=security)) as admin:
            if password is None:
                await admin.users.remove("carol", MECHANISMS[name])
            else:
                await admin.users.set_password("carol", password, mechanism=MECHANISMS[name])

    asyncio.run(change(PASSWORD))
    own = store_settings(certificates) | ASKS | {"authentication.sasl.mechanism": name, "super.users": "User:carol"}
    registry = Registry(
        broker.bootstrap, store=StoreOptions(name), election=ElectionOptions(name), settings=own
    ).start()

    def status(user: str, password: str) -> int:
        return ask(registry.url, "GET", "/subjects", basic(user, password)).status

    try:
        until(lambda: status("carol", PASSWORD), lambda found: found == 200)
        assert status("carol", "wrong") == 401
        assert status("nobody", PASSWORD) == 401
        assert status("admin", "admin-secret") == 401  # a user of PLAIN has no SCRAM password
        assert status("carol", PASSWORD) == 200
        asyncio.run(change("another"))
        until(lambda: status("carol", "another"), lambda found: found == 200)
        assert status("carol", PASSWORD) == 401
        asyncio.run(change(None))
        until(lambda: status("carol", "another"), lambda found: found == 401)
    finally:
        registry.stop()
