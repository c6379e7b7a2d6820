"""SASL on a connection: each mechanism, refusals that are final, sessions that are renewed, sources of tokens."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.client.scripted import ScriptedBroker, metadata
from tests.client.security.servers import SaslAnswers
from tests.support.server_exchange import ServerExchange

from ottla.client.address import Address
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.errors import AuthenticationError, NotConnected
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.producer.producer import Producer
from ottla.client.security.secret import Secret
from ottla.client.security.security import Security
from ottla.client.security.tokens import TokenEndpoint
from ottla.model.errors import ErrorCode
from ottla.security.jwt import ValidToken
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated
from ottla.security.sasl.jaas import SCRAM_MODULE
from ottla.security.sasl.oauthbearer import OauthServer
from ottla.security.sasl.plain import PlainServer, check_against
from ottla.security.sasl.scram.credentials import ScramIdentity, ScramMechanism, credential_of
from ottla.security.sasl.scram.server import ScramServer
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.wire.messages.topics.metadata import MetadataRequest

PASSWORD = "opensesame"
ALICE = Principal.user("alice")


def settings(mechanism: str, password: str = PASSWORD, **more: str) -> dict[str, str]:
    own = {} if mechanism == "OAUTHBEARER" else {"sasl.username": "alice", "sasl.password": password}
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism} | own | more


def plain() -> ServerExchange:
    return PlainServer(check_against({"alice": PASSWORD}))


def scram(mechanism: ScramMechanism, tokens: list[bool] | None = None) -> Callable[[], ServerExchange]:
    identity = ScramIdentity(credential_of(PASSWORD, b"salt", 4096, mechanism), ALICE)

    def known(user: str, is_token: bool) -> ScramIdentity | None:
        if tokens is not None:
            tokens.append(is_token)
        return identity if user == "alice" else None

    return lambda: ScramServer(mechanism, "servernonce", b"secret", known)


def bearer() -> ServerExchange:
    return OauthServer(lambda token: ValidToken(token, (), 0, None))


async def connect(broker: ScriptedBroker, security: Security) -> Connection:
    return await Connection.open(Address("127.0.0.1", broker.port), security=security)


@pytest.mark.parametrize(
    ("mechanism", "exchange"),
    [
        ("PLAIN", plain),
        ("SCRAM-SHA-256", scram(ScramMechanism.SHA_256)),
        ("SCRAM-SHA-512", scram(ScramMechanism.SHA_512)),
    ],
)
def test_a_password(mechanism: str, exchange: Callable[[], ServerExchange]) -> None:
    async def test() -> None:
        server = SaslAnswers(mechanism, exchange)
        async with ScriptedBroker(server.answers) as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            connection = await connect(broker, Security.of(settings(mechanism)))
            assert server.authenticated == ["User:alice"]
            assert (await connection.request(MetadataRequest(topics=None))).cluster_id == "scripted"
            connection.close()
            with pytest.raises(AuthenticationError, match=f"refused {mechanism} user alice") as raised:
                await connect(broker, Security.of(settings(mechanism, "not the password")))
            assert "not the password" not in str(raised.value)
            other = "PLAIN" if mechanism != "PLAIN" else "SCRAM-SHA-256"
            with pytest.raises(AuthenticationError, match=f"does not offer {other}; its mechanisms: {mechanism}"):
                await connect(broker, Security.of(settings(other)))

    asyncio.run(test())


def test_a_delegation_token_says_that_it_is_one() -> None:
    async def test() -> None:
        tokens: list[bool] = []
        server = SaslAnswers("SCRAM-SHA-256", scram(ScramMechanism.SHA_256, tokens))
        line = f'{SCRAM_MODULE} required username="alice" password="{PASSWORD}" tokenauth="true";'
        given = settings("SCRAM-SHA-256") | {"sasl.username": "", "sasl.password": "", "sasl.jaas.config": line}
        async with ScriptedBroker(server.answers) as broker:
            (await connect(broker, Security.of(given))).close()
        assert tokens == [True]

    asyncio.run(test())


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    class Impostor:
        """Accepts any proof, and cannot prove anything itself."""

        def __init__(self) -> None:
            self._real = scram(ScramMechanism.SHA_256)()
            self._asked = False

        def respond(self, message: bytes) -> bytes | Authenticated:
            if not self._asked:
                self._asked = True
                return self._real.respond(message)
            return Authenticated(ALICE, b"v=" + b"A" * 43 + b"=")

    async def test() -> None:
        server = SaslAnswers("SCRAM-SHA-256", Impostor)
        async with ScriptedBroker(server.answers) as broker:
            with pytest.raises(AuthenticationError, match="did not prove its identity"):
                await connect(broker, Security.of(settings("SCRAM-SHA-256")))

    asyncio.run(test())


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.NONE])
def test_a_server_cannot_choose_a_weaker_mechanism(mechanism: str, code: ErrorCode) -> None:
    """A server that offers PLAIN alone, or says so and takes whatever comes, never sees the password."""

    async def test() -> None:
        handshake = SaslHandshakeResponse(error_code=int(code), mechanisms=["PLAIN"])
        accepted = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"")
        answers = {SaslHandshakeRequest: lambda _: handshake, SaslAuthenticateRequest: lambda _: accepted}
        provider = (lambda: "a.token.x") if mechanism == "OAUTHBEARER" else None
        async with ScriptedBroker(answers) as broker:
            security = Security.of(settings(mechanism), token_provider=provider)
            if code:
                with pytest.raises(AuthenticationError, match=f"does not offer {mechanism}; its mechanisms: PLAIN"):
                    await connect(broker, security)
            elif mechanism == "OAUTHBEARER":
                (await connect(broker, security)).close()
            else:
                with pytest.raises(AuthenticationError, match="did not prove its identity"):
                    await connect(broker, security)
            asked = [message for _, message in broker.requests]
        sent = [bytes(each.auth_bytes) for each in asked if isinstance(each, SaslAuthenticateRequest)]
        assert len(sent) == (0 if code else 1)
        assert {each.mechanism for each in asked if isinstance(each, SaslHandshakeRequest)} == {mechanism}
        assert not any(PASSWORD.encode() in message for message in sent)

    asyncio.run(test())


def test_a_listener_without_sasl_is_named() -> None:
    async def test() -> None:
        refusal = SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE), mechanisms=[])
        async with ScriptedBroker({SaslHandshakeRequest: lambda _: refusal}) as broker:
            with pytest.raises(AuthenticationError, match="expects no SASL"):
                await connect(broker, Security.of(settings("PLAIN")))

    asyncio.run(test())


def test_wrong_credentials_are_final_for_every_client() -> None:
    """Nothing waits for `api_timeout_ms`, which is an hour here: the error comes at once, after one attempt."""

    async def test() -> None:
        server = SaslAnswers("PLAIN", plain)
        async with ScriptedBroker(server.answers) as broker:
            options = ClientOptions(
                parse_bootstrap(broker.bootstrap), api_timeout_ms=3_600_000, security=settings("PLAIN", "wrong")
            )
            async with Cluster(options) as cluster:
                with pytest.raises(AuthenticationError):
                    await cluster.refresh()
            producer = Producer(options)
            with pytest.raises(AuthenticationError):
                await producer.send("t", b"value")
            await producer.close(discard=True)
            async with Consumer(options, ConsumerOptions(group_id="g")) as consumer:
                consumer.subscribe(["t"])
                with pytest.raises(AuthenticationError):
                    await consumer.poll(timeout_ms=3_600_000)
            assert broker.connections <= 6

    asyncio.run(test())


# --- KIP-368 ----------------------------------------------------------------------------------------------------------


def test_a_session_is_renewed_on_the_open_connection() -> None:
    """Requests go on meanwhile; none of them comes between the parts of an authentication."""

    async def test() -> None:
        server = SaslAnswers("SCRAM-SHA-256", scram(ScramMechanism.SHA_256), lifetime_ms=50)
        async with ScriptedBroker(server.answers) as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            connection = await connect(broker, Security.of(settings("SCRAM-SHA-256")))
            asked = 0
            while len(server.authenticated) < 5:
                answers = await asyncio.gather(*(connection.request(MetadataRequest(topics=None)) for _ in range(20)))
                asked += len(answers)
            assert connection.is_open and broker.connections == 1
            connection.close()
            kinds = [type(message) for _, message in broker.requests]
            assert kinds.count(MetadataRequest) == asked
            begins = [place for place, kind in enumerate(kinds) if kind is SaslHandshakeRequest]
            assert len(begins) >= 5
            for place in begins[:5]:
                assert kinds[place + 1 : place + 3] == [SaslAuthenticateRequest] * 2

    asyncio.run(test())


def test_a_session_that_cannot_be_renewed_ends_the_connection() -> None:
    async def test() -> None:
        password = PASSWORD
        server = SaslAnswers("PLAIN", lambda: PlainServer(check_against({"alice": password})), lifetime_ms=20)
        async with ScriptedBroker(server.answers) as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            connection = await connect(broker, Security.of(settings("PLAIN")))
            password = "changed meanwhile"

            async def ask_on() -> None:
                while True:
                    await connection.request(MetadataRequest(topics=None))

            with pytest.raises((AuthenticationError, NotConnected), match="refused PLAIN user alice"):
                await ask_on()
            assert not connection.is_open

    asyncio.run(test())


# --- tokens -----------------------------------------------------------------------------------------------------------


class _Provider(BaseHTTPRequestHandler):
    """A token endpoint; `said` is what it answers with, `asked` what it was asked."""

    said: tuple[int, object] = (200, {})
    asked: list[tuple[str, str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append((self.headers["Authorization"], body))
        status, content = self.said
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[tuple[str, type[_Provider]]]:
    kind = type("Provider", (_Provider,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token", kind
    server.shutdown()
    thread.join()
    server.server_close()


def test_tokens_of_an_endpoint_are_kept_while_they_live(provider: tuple[str, type[_Provider]]) -> None:
    url, kind = provider
    kind.said = 200, {"access_token": "first.token.x", "expires_in": 3600}
    endpoint = {
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": PASSWORD,
        "sasl.oauthbearer.scope": "kafka",
    }

    async def test() -> None:
        server = SaslAnswers("OAUTHBEARER", bearer)
        async with ScriptedBroker(server.answers) as broker:
            for _ in range(2):
                (await connect(broker, Security.of(settings("OAUTHBEARER") | endpoint))).close()
        assert server.authenticated == ["User:first.token.x"] * 2

    asyncio.run(test())
    assert kind.asked == [("Basic bWU6b3BlbnNlc2FtZQ==", "grant_type=client_credentials&scope=kafka")]


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        ((401, {"error": "invalid_client"}), AuthenticationError, "refused the client me: invalid_client"),
        ((200, {"token": "x"}), AuthenticationError, "without an access_token"),
        ((200, "no"), AuthenticationError, "not with a token"),
        ((503, {}), NotConnected, "answered with status 503"),
    ],
)
def test_failures_of_a_token_endpoint(
    provider: tuple[str, type[_Provider]], said: tuple[int, object], error: type[Exception], text: str
) -> None:
    url, kind = provider
    kind.said = said
    with pytest.raises(error, match=text) as raised:
        TokenEndpoint(url, "me", Secret(PASSWORD)).token()
    assert PASSWORD not in str(raised.value)


def test_a_token_of_a_file_or_a_function(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from.a.file\n")
    file = {"sasl.oauthbearer.token.endpoint.url": path.as_uri()}

    async def test() -> None:
        server = SaslAnswers("OAUTHBEARER", bearer)
        async with ScriptedBroker(server.answers) as broker:
            (await connect(broker, Security.of(settings("OAUTHBEARER") | file))).close()
            (
                await connect(broker, Security.of(settings("OAUTHBEARER"), token_provider=lambda: "from.a.function"))
            ).close()
            with pytest.raises(AuthenticationError, match="the token provider returned no token"):
                await connect(broker, Security.of(settings("OAUTHBEARER"), token_provider=lambda: ""))
        assert server.authenticated == ["User:from.a.file", "User:from.a.function"]

    asyncio.run(test())
