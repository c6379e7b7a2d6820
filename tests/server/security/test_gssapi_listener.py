"""A listener with GSSAPI and a real KDC: who is accepted as whom, what is refused, and settings that cannot work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.server.security.gssapi_settings import ByHand, begin, listener, send
from tests.server.security.secured import SaslListeners
from tests.support.clients.kerberos import HOST, SERVICE, cache_login, keytab_login, with_keytab
from tests.support.logins import Logins
from tests.support.processes.kdc import REALM, Kdc
from tests.support.requests.fuzzing import chance, damaged, noise
from tests.support.requests.raw import Closed, RawConnection

from ottla import AclEntry, Admin, ApiError, ClientError, Producer
from ottla.client.errors import AuthenticationError, NotConnected
from ottla.client.security.kerberos import begin_exchange
from ottla.client.security.security import Security
from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.sasl.kerberos_login import KerberosLogin
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.topics.metadata import MetadataRequest

Start = Callable[..., EmbeddedBroker]
TOPIC = AclResourceType.TOPIC
METADATA = MetadataRequest(topics=[])
# Of a token of RFC 4121. Its RRC may have several values with one meaning, so it is left as it is.
WRAP_HEADER_BYTES = 16
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"


class Realm(NamedTuple):
    kdc: Kdc
    node: Path  # keytabs
    alice: Path
    carol: Path


@pytest.fixture(scope="module")
def realm(kdc: Kdc) -> Realm:
    return Realm(kdc, kdc.add("kafka/localhost"), kdc.add("alice"), kdc.add("carol-ops"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[EmbeddedBroker] = []

    def run(settings: dict[str, str]) -> EmbeddedBroker:
        started.append(EmbeddedBroker(tmp_path / "data", settings).start())
        return started[-1]

    yield run
    for broker in started:
        broker.stop()


def settings_of(jaas: str) -> dict[str, str]:
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": SERVICE}
    return own | ({"sasl.jaas.config": jaas} if jaas else {})


def place_of(broker: EmbeddedBroker) -> str:
    """The address by the name that is in the ticket."""
    return broker.bootstrap.replace("127.0.0.1", HOST)


def write(broker: EmbeddedBroker, security: dict[str, str], topic: str = "t") -> None:
    async def run() -> None:
        async with Producer(place_of(broker), security=security) as producer:
            await producer.send(topic, b"x")
            await producer.flush()

    asyncio.run(run())


def prepare(broker: EmbeddedBroker, realm: Realm, *users: str) -> None:
    """As the node's own principal, which is a super user: a topic, and the right to write to it."""

    async def run() -> None:
        own = with_keytab(f"kafka/localhost@{REALM}", realm.node).java()
        async with Admin(place_of(broker), security=own) as admin:
            await admin.topics.create("t")
            await admin.acls.create(
                AclEntry(TOPIC, "t", PatternType.LITERAL, f"User:{each}", "*", AclOperation.WRITE, AclPermission.ALLOW)
                for each in users
            )

    asyncio.run(run())


def test_principals_rules_and_rights(start: Start, realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    broker, logins = start(listener(realm.node)), Logins(monkeypatch)
    prepare(broker, realm, "alice")
    assert logins.principals == {"User:kafka"}
    write(broker, settings_of(keytab_login("alice", realm.alice)))
    cache = realm.kdc.tickets("carol-ops", realm.carol)
    with pytest.raises((ApiError, ClientError), match="TOPIC_AUTHORIZATION_FAILED"):
        write(broker, settings_of(cache_login("carol-ops", cache)))
    assert logins.principals == {"User:kafka", "User:alice", "User:carol"}, "carol-ops is carol by a rule"


def test_the_default_cache(start: Start, realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    broker, logins = start(listener(realm.node)), Logins(monkeypatch)
    prepare(broker, realm, "alice")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.kdc.tickets('alice', realm.alice)}")
    write(broker, settings_of(""))
    assert "User:alice" in logins.principals


def test_an_exchange_by_hand_and_again(start: Start, realm: Realm, sasl: SaslListeners) -> None:
    broker = start(sasl.settings(listener(realm.node, connections_max_reauth_ms="60000")))
    with sasl.connect(broker.bootstrap) as connection:
        for authorization_id in (b"", b"kafka@localhost", b"admin@OTTLA.TEST"):
            client = ByHand(realm.kdc, "alice", realm.alice)
            assert client.until_offer(connection) == b"\x01\0\0\0"
            answer = client.choose(connection, b"\x01\0\0\0" + authorization_id)
            assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 60_000)
            assert connection.call(METADATA, 12).brokers  # type: ignore[attr-defined]
            assert broker.node is not None
            (known,) = {
                str(each.context.principal) for each in broker.node.connections.connections if each.context.sasl
            }
            assert known == "User:alice", "an authorization id has no effect"
        other = ByHand(realm.kdc, "carol-ops", realm.carol)
        other.until_offer(connection)
        assert other.choose(connection, b"\x01\0\0\0").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


ATTACKS: dict[str, Callable[[ByHand, RawConnection], object]] = {
    "an empty token": lambda _, connection: begin(connection) or send(connection, b""),
    "garbage": lambda _, connection: begin(connection) or send(connection, b"\x60\x82garbage" * 50),
    "a token cut short": lambda client, connection: begin(connection) or send(connection, client.first[:-20]),
    "a token changed": lambda client, connection: begin(connection) or send(connection, flipped(client.first)),
    "integrity demanded": lambda client, connection: chosen(client, connection, b"\x02\0\xff\xff"),
    "confidentiality demanded": lambda client, connection: chosen(client, connection, b"\x04\0\xff\xff"),
    "a choice cut short": lambda client, connection: chosen(client, connection, b"\x01"),
    "a choice without signature": lambda client, connection: (
        client.until_offer(connection) and send(connection, b"\x01\0\0\0")
    ),
}


def flipped(token: bytes) -> bytes:
    return token[:-5] + bytes((token[-5] ^ 1,)) + token[-4:]


def chosen(client: ByHand, connection: RawConnection, choice: bytes) -> object:
    client.until_offer(connection)
    return client.choose(connection, choice)


def test_attacks(start: Start, realm: Realm, sasl: SaslListeners, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    broker = start(sasl.settings(listener(realm.node)))
    for name, attack in ATTACKS.items():
        with sasl.connect(broker.bootstrap) as connection:
            answer = attack(ByHand(realm.kdc, "alice", realm.alice), connection)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, name  # type: ignore[attr-defined]
            assert (answer.error_message, answer.auth_bytes) == (REFUSED, b""), name  # type: ignore[attr-defined]
            with pytest.raises((Closed, ConnectionError)):
                connection.call(METADATA, 12)
    assert "the client chose a security layer that was not offered (4)" in caplog.text, "the log tells why"


def test_fuzzed_exchanges_let_nobody_in(
    start: Start, realm: Realm, sasl: SaslListeners, caplog: pytest.LogCaptureFixture
) -> None:
    """Real messages of a client, damaged and followed by anything, in each state of the exchange."""
    broker, rng = start(sasl.settings(listener(realm.node))), chance("gssapi")
    first = ByHand(realm.kdc, "alice", realm.alice).first
    for _ in range(80):
        with sasl.connect(broker.bootstrap) as connection, suppress(Closed, ConnectionError):
            begin(connection)
            send(connection, damaged(first, rng))
            for _ in range(rng.randrange(1, 4)):
                send(connection, rng.choice((b"", noise(rng), first, damaged(first, rng))))
        is_out(broker)
    for _ in range(6):
        client = ByHand(realm.kdc, "alice", realm.alice)
        with sasl.connect(broker.bootstrap) as connection:
            client.until_offer(connection)
            wrapped = client.context.wrap(b"\x01\0\0\0", False).message
            spoilt = wrapped[:WRAP_HEADER_BYTES] + damaged(wrapped[WRAP_HEADER_BYTES:], rng)
            assert send(connection, spoilt).error_message == REFUSED
    assert not [each for each in caplog.records if each.exc_info or each.levelname == "ERROR"]
    with sasl.connect(broker.bootstrap) as connection:
        client = ByHand(realm.kdc, "alice", realm.alice)
        client.until_offer(connection)
        assert client.choose(connection, b"\x01\0\0\0").error_code == 0


def is_out(broker: EmbeddedBroker) -> None:
    assert broker.node is not None
    known = {str(each.context.principal) for each in broker.node.connections.connections if each.context.sasl}
    assert "User:alice" not in known


def test_a_token_is_good_once(start: Start, realm: Realm) -> None:
    broker = start(listener(realm.node))
    client = ByHand(realm.kdc, "alice", realm.alice)
    with RawConnection(broker.bootstrap) as connection:
        begin(connection)
        assert send(connection, client.first).error_code == 0
    with RawConnection(broker.bootstrap) as connection:
        begin(connection)
        assert send(connection, client.first).error_message == REFUSED


def test_a_new_key_in_the_keytab_is_used_at_once(start: Start, realm: Realm) -> None:
    broker = start(listener(realm.node))
    assert realm.kdc.add("kafka/localhost") == realm.node, "it has another key, which the file has, too"
    with RawConnection(broker.bootstrap) as connection:
        client = ByHand(realm.kdc, "alice", realm.alice)
        assert client.until_offer(connection)
        assert client.choose(connection, b"\x01\0\0\0").error_code == 0


def login(principal: str, keytab: Path) -> KerberosLogin:
    return KerberosLogin(SERVICE, principal, str(keytab), uses_keytab=True)


def test_logins_that_fail(realm: Realm, tmp_path: Path) -> None:
    kdc = realm.kdc
    with pytest.raises(AuthenticationError, match=r"alice has no Kerberos ticket for kafka@elsewhere: .*not found"):
        begin_exchange(login("alice", realm.alice), "elsewhere")
    with pytest.raises(AuthenticationError, match="nobody has no Kerberos ticket"):
        begin_exchange(login("nobody", realm.alice), "localhost")
    with pytest.raises(AuthenticationError, match="has no Kerberos ticket"):
        begin_exchange(login("alice", tmp_path / "missing"), "localhost")
    stale = kdc.add("stale")
    kdc.new_key("stale")
    with pytest.raises(AuthenticationError, match="stale has no Kerberos ticket"):
        begin_exchange(login("stale", stale), "localhost")
    cache = str(kdc.tickets("alice", realm.alice, lifetime="1s"))
    time.sleep(2.1)
    with pytest.raises(AuthenticationError, match="expired"):
        begin_exchange(KerberosLogin(SERVICE, "alice", ticket_cache=cache, uses_ticket_cache=True), "localhost")


def test_a_kdc_that_does_not_answer(realm: Realm) -> None:
    late = realm.kdc.add("late")
    realm.kdc.stop()
    try:
        with pytest.raises(NotConnected, match="Cannot contact any KDC"):
            begin_exchange(login("late", late), "localhost")
    finally:
        realm.kdc.start()
    assert begin_exchange(login("late", late), "localhost").first()


def test_a_node_whose_key_is_not_that_of_its_tickets(start: Start, realm: Realm) -> None:
    """The keytab has another key than the KDC: the client is refused, and learns no more."""
    keytab = realm.kdc.add("other/localhost")
    realm.kdc.new_key("other/localhost")
    settings = listener(keytab, sasl_kerberos_service_name="other")
    settings["listener.name.sasl_plaintext.gssapi.sasl.jaas.config"] = keytab_login("other/localhost", keytab)
    broker = start(settings)
    with RawConnection(broker.bootstrap) as connection:
        begin(connection)
        client = ByHand(realm.kdc, "alice", realm.alice, "other@localhost")
        assert send(connection, client.first).error_message == REFUSED


@pytest.mark.parametrize(
    ("jaas", "settings", "told"),
    [
        ("", {}, "gssapi.sasl.jaas.config is not set, and GSSAPI needs it"),
        ("kafka/elsewhere", {}, "GSSAPI: the keytab .* cannot be used for kafka/elsewhere: No key table entry"),
        ("kafka/localhost", {"sasl_kerberos_service_name": ""}, "GSSAPI: sasl.kerberos.service.name is not set"),
        (
            "kafka/localhost",
            {"sasl_kerberos_principal_to_local_rules": "RULE:[x"},
            "principal.to.local.rules: expected",
        ),
    ],
)
def test_settings_that_cannot_work(
    jaas: str, settings: dict[str, str], told: str, realm: Realm, tmp_path: Path
) -> None:
    chosen = listener(realm.node, **settings)
    line = keytab_login(jaas, realm.node) if jaas else ""
    chosen["listener.name.sasl_plaintext.gssapi.sasl.jaas.config"] = line
    with pytest.raises(ApiError, match=told):
        EmbeddedBroker(tmp_path / "data", chosen).start()


def test_the_package_is_missing(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(
        ApiError, match=r"listener SASL_PLAINTEXT: GSSAPI: it needs the package gssapi: pip install .*kerb"
    ):
        EmbeddedBroker(tmp_path / "data", listener(realm.node)).start()
    with pytest.raises(ValueError, match=r"GSSAPI: it needs the package gssapi: pip install .*\[kerberos\]"):
        Security.of(settings_of(keytab_login("alice", realm.alice)))


def test_other_mechanisms_do_not_load_the_package() -> None:
    program = (
        "import sys, ottla.server.security.listener_sasl, ottla.client.security.sasl; print('gssapi' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
