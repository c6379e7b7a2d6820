"""Listeners follow the settings of the metadata: over restarts, with a snapshot, and when they cannot be used."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.server.security.oauth_settings import LOGIN
from tests.server.security.secured import PASSWORDS, Certificates, plain_jaas
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.cluster.journal import Item
from ottla.cluster.snapshot import config_entry, snapshot
from ottla.cluster.state import ClusterState
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.resources import Resource
from ottla.server.loop.runtime import Runtime
from ottla.server.security.listener_sasl import ListenerSasl
from ottla.server.security.node_security import NodeSecurity
from ottla.server.settings.configs import Configs
from ottla.server.settings.listeners import listened
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

NODE = Resource.broker(1)
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
LINE = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
KEYSTORE = "listener.name.ssl.ssl.keystore.location"
ADMIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": plain_jaas("admin", {"admin": PASSWORDS["admin"]}),
}
BEFORE = {"admin": PASSWORDS["admin"], "old": "old-secret"}
AFTER = {"admin": PASSWORDS["admin"], "new": "new-secret"}
PLAIN = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "connection.failed.authentication.delay.ms": "1",
    LINE: plain_jaas("admin", BEFORE),
}


def logs_in(address: str, user: str, password: str) -> bool:
    with RawConnection(address) as connection:
        begun: Any = connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        if begun.error_code:
            assert begun.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return False
        message = f"\0{user}\0{password}".encode()
        answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
        return not answer.error_code


def who(address: str) -> tuple[bool, bool]:
    """Whether the user that was removed gets in, and the one that was added."""
    return logs_in(address, "old", "old-secret"), logs_in(address, "new", "new-secret")


def change(broker: EmbeddedBroker, security: Mapping[str, str], values: Mapping[str, str | None]) -> None:
    with Blocking(broker.bootstrap, security=security) as client:
        client.admin.configs.set(NODE, values)


# --- SASL


def test_users_of_the_metadata_outlive_a_restart(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, PLAIN) as broker:
        assert who(broker.bootstrap) == (True, False)
        change(broker, ADMIN, {LINE: plain_jaas("admin", AFTER)})
        until(lambda: who(broker.bootstrap), lambda found: found == (False, True))
    with EmbeddedBroker(tmp_path, PLAIN) as broker:
        assert who(broker.bootstrap) == (False, True)


def test_users_come_with_snapshots(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, PLAIN) as broker:
        assert broker.node is not None and broker._thread.loop is not None
        host = broker.node.metadata

        async def load() -> None:
            other = host.state.copy()
            other.apply(config_entry(NODE, LINE, plain_jaas("admin", AFTER)).record)
            items = [Item(at, 1, 0, entry) for at, entry in enumerate(snapshot(other))]
            in_one_go(host.loading_snapshot(items, host.end_offset, host.last_epoch))

        asyncio.run_coroutine_threadsafe(load(), broker._thread.loop).result(WAIT_S)
        until(lambda: who(broker.bootstrap), lambda found: found == (False, True))


def test_a_jaas_line_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, PLAIN) as broker:
        for changes in ({LINE: "nonsense"}, {"sasl.enabled.mechanisms": "PLAIN,DIGEST-MD5"}):
            with pytest.raises(ApiError) as refused:
                change(broker, ADMIN, changes)
            assert refused.value.code == ErrorCode.INVALID_REQUEST
        assert who(broker.bootstrap) == (True, False)


def test_a_node_starts_with_settings_that_it_could_not_have_checked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are of a listener that did not exist. Its users in the properties file are not let in instead."""
    external = "listener.name.external.plain.sasl.jaas.config"
    two = {
        **PLAIN,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,EXTERNAL:SASL_PLAINTEXT",
        external: plain_jaas("admin", BEFORE),
    }
    with EmbeddedBroker(tmp_path, PLAIN) as broker:
        change(broker, ADMIN, {external: "no secret is told"})
    with EmbeddedBroker(tmp_path, two) as broker:
        assert broker.node is not None
        host, port = broker.node.addresses[1]
        address = f"{host}:{port}"
        assert who(address) == (False, False)
        assert "EXTERNAL serves of its SASL mechanisms none: listener EXTERNAL: plain.sasl.jaas.config" in caplog.text
        assert "no secret is told" not in caplog.text
        change(broker, ADMIN, {"listener.name.sasl_plaintext.connections.max.reauth.ms": "1000000"})  # not to blame
        assert who(address) == (False, False)
        change(broker, ADMIN, {external: plain_jaas("admin", AFTER)})
        until(lambda: who(address), lambda found: found == (False, True))


def test_what_a_snapshot_brings_before_the_node_has_started(caplog: pytest.LogCaptureFixture) -> None:
    """It may be followed before the node takes it over; that is no reason to keep the users of the file."""

    async def test() -> None:
        configs, state = Configs(PLAIN), ClusterState()
        runtime = Runtime(asyncio.get_running_loop(), now_ms=lambda: 0, rng=Random(7))
        security = NodeSecurity(runtime, configs, listened(configs.broker), lambda: state)
        sasl = security.listener("SASL_PLAINTEXT").sasl
        assert sasl is not None and list(sasl.new_authentication().mechanisms) == ["PLAIN"]
        state.apply(config_entry(NODE, LINE, "nonsense").record)
        configs.follow(state)
        await security.refresh()
        assert security.take_over() is None
        assert not sasl.new_authentication().mechanisms
        state.apply(config_entry(NODE, LINE, plain_jaas("admin", AFTER)).record)
        configs.follow(state)
        await security.refresh()
        security.started()
        state.apply(config_entry(NODE, LINE, "nonsense").record)
        configs.follow(state)
        await security.refresh()
        assert list(sasl.new_authentication().mechanisms) == ["PLAIN"], "the last good ones are kept"

    asyncio.run(test())
    assert [each.split(":")[0] for each in caplog.messages if each.startswith("listener")] == [
        "listener SASL_PLAINTEXT serves of its SASL mechanisms none",
        "listener SASL_PLAINTEXT keeps its old SASL settings",
    ]


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with closing(asyncio.new_event_loop()) as loop:
        yield Runtime(loop, now_ms=lambda: 0, rng=Random(7))


OAUTH = "listener.name.sasl_plaintext.oauthbearer."
BOTH = {
    **PLAIN,
    "sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN",
    f"{OAUTH}sasl.jaas.config": f"{LOGIN};",
    f"{OAUTH}sasl.oauthbearer.jwks.endpoint.url": "file:/nowhere/keys",
    f"{OAUTH}sasl.oauthbearer.expected.audience": "before",
}


def sasl_of(runtime: Runtime, node: NodeConfig) -> ListenerSasl:
    credentials: Any = None  # for SCRAM
    return ListenerSasl("SASL_PLAINTEXT", node, runtime, credentials)


def test_all_mechanisms_change_or_none(runtime: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    node = Configs(BOTH).node
    sasl = sasl_of(runtime, node)
    before = sasl._now
    other = {f"{OAUTH}sasl.oauthbearer.expected.audience": "after"}
    for _ in range(2):
        sasl.follow(node.with_dynamic({}, other | {LINE: "nonsense"}))
        assert sasl._now is before
    assert caplog.text.count("listener SASL_PLAINTEXT keeps its old SASL settings") == 1
    sasl.follow(node.with_dynamic({}, other))
    assert sasl._now is not before and not sasl._problem


def test_the_keys_of_tokens_are_kept_while_their_settings_are(runtime: Runtime) -> None:
    node = Configs(BOTH).node
    sasl = sasl_of(runtime, node)

    def keys() -> object:
        return None if sasl._now.oauth is None else sasl._now.oauth._keys

    before = keys()
    sasl.follow(node.with_dynamic({}, {f"{OAUTH}sasl.oauthbearer.expected.audience": "after"}))
    assert keys() is before
    sasl.follow(node.with_dynamic({}, {f"{OAUTH}sasl.oauthbearer.jwks.endpoint.url": "file:/elsewhere/keys"}))
    assert keys() not in (before, None)
    sasl.follow(node.with_dynamic({}, {"listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN"}))
    assert keys() is None, "nobody reads them any more"


# --- TLS


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path / "certificates")


Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path, certificates: Certificates) -> Start:
    """Run a node whose only listener has TLS."""

    @contextmanager
    def run(**settings: str) -> Iterator[EmbeddedBroker]:
        own = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
        chosen = own | certificates.node() | {name.replace("_", "."): value for name, value in settings.items()}
        with EmbeddedBroker(tmp_path / "data", chosen) as broker:
            yield broker

    certificates.node()
    return run


def shown(broker: EmbeddedBroker, tls: ssl.SSLContext) -> int:
    with RawConnection(broker.bootstrap, tls=tls) as connection:
        assert connection.call(HELLO, 3).error_code == 0  # type: ignore[attr-defined]
        return int(connection._socket.getpeercert()["serialNumber"], 16)  # type: ignore[attr-defined]


def refresh(broker: EmbeddedBroker) -> None:
    assert broker.node is not None and broker._thread.loop is not None
    asyncio.run_coroutine_threadsafe(broker.node.rooms.security.refresh(), broker._thread.loop).result(WAIT_S)


def security(certificates: Certificates) -> dict[str, str]:
    return {"security.protocol": "SSL", **certificates.ours("admin")}


def another(certificates: Certificates) -> tuple[Path, int]:
    """A keystore with another certificate of the node, and the serial number of it."""
    identity = certificates.authority.node(common_name="node")
    return identity.write(certificates.directory, "another"), identity.certificate.serial_number


def test_a_keystore_of_the_metadata_outlives_a_restart(start: Start, certificates: Certificates) -> None:
    path, serial = another(certificates)
    with start() as broker:
        change(broker, security(certificates), {KEYSTORE: str(path)})
    with start() as broker:
        assert shown(broker, certificates.context) == serial
    with start(ssl_keystore_location=str(path.with_name("gone.pem"))) as broker:
        assert shown(broker, certificates.context) == serial, "the keystore of the properties file is not needed"


def test_without_the_keystore_of_the_metadata_that_of_the_file_is_shown(
    start: Start, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    path, serial = another(certificates)
    with start() as broker:
        change(broker, security(certificates), {KEYSTORE: str(path)})
    content = path.read_text()
    path.unlink()
    with start() as broker:
        assert shown(broker, certificates.context) != serial
        assert "listener SSL keeps its old certificate" in caplog.text
        path.write_text(content)
        refresh(broker)
        assert shown(broker, certificates.context) == serial
    path.unlink()
    with (
        pytest.raises(ApiError, match=r"another.pem.* cannot be read"),
        start(ssl_keystore_location="/nowhere/key.pem"),
    ):
        pass


def test_without_the_truststore_of_the_metadata_nobody_is_let_in(
    start: Start, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """The properties file may trust an authority that was taken away since."""
    fewer = certificates.directory / "fewer.pem"
    certificates.authority.write(fewer)
    with start(ssl_client_auth="required") as broker:
        change(broker, security(certificates), {"listener.name.ssl.ssl.truststore.location": str(fewer)})
    content = fewer.read_text()
    fewer.unlink()
    with start(ssl_client_auth="required") as broker:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            shown(broker, certificates.context)
        assert "listener SSL refuses all clients" in caplog.text
        fewer.write_text(content)
        refresh(broker)
        assert shown(broker, certificates.context)


def test_a_fresh_node_without_a_keystore_formats_nothing(start: Start, tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="cannot be read"), start(ssl_keystore_location="/nowhere/key.pem"):
        pass
    assert not (tmp_path / "data" / "meta.properties").exists()
