"""The client of schema registries, against one that misbehaves as told."""

from __future__ import annotations

import base64
import json
import pickle
import threading
from collections import OrderedDict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.client.security.servers import server_context
from tests.support.certificates import Authority

from ottla.client.registry import RegisteredVersion, RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.model.limits import REGISTRY_WAITS_IN_VAIN_MAX
from ottla.schemas.schema import InvalidSchema, Reference, SchemaSource, SchemaType


class Told(BaseHTTPRequestHandler):
    """Answers what the test laid out by path; what was asked is kept."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        server: Any = self.server
        server.asked.append((self.command, self.path, body, dict(self.headers)))
        answers = server.answers.get(self.path, [])
        status, said = answers.pop(0) if len(answers) > 1 else (answers or [(404, {"error_code": 40403})])[0]
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    made: Any = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    made.asked, made.answers = [], {}
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def test_https_with_credentials_of_settings(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    server.socket = server_context(authority.server(), clients=authority).wrap_socket(server.socket, server_side=True)
    server.answers["/subjects"] = [(200, ["orders-value"])]
    url = f"https://localhost:{server.server_port}"
    me = authority.client("me")
    monkeypatch.setenv("REGISTRY_USER", "me:secret")
    settings = {
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "env:REGISTRY_USER",
        "schema.registry.ssl.truststore.location": str(authority.write(tmp_path / "ca.pem")),
        "schema.registry.ssl.keystore.location": str(me.write(tmp_path, "me")),
    }
    registry = pickle.loads(pickle.dumps(client(url, security=settings)))
    assert registry.subjects() == ["orders-value"]
    assert server.asked[-1][3]["Authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()
    bearer = settings | {"bearer.auth.token": "a.b.c", "basic.auth.credentials.source": "URL"}
    assert client(url, security=bearer).subjects() == ["orders-value"]
    assert server.asked[-1][3]["Authorization"] == "Bearer a.b.c"
    with pytest.raises(RegistryUnreachable, match="authority that is not in the truststore"):
        client(url).subjects()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"basic.auth.user": "me"}, "basic.auth.user: there is no such setting"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "USER_INFO needs basic.auth.user.info"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "SASL_INHERIT needs a user of SASL"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "is STATIC_TOKEN, not OAUTHBEARER"),
        ({"schema.registry.ssl.foo": "x"}, "schema.registry.ssl.foo: there is no such setting"),
    ],
)
def test_wrong_settings_of_security(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RegistryOptions.of("http://registry", security=settings)


def test_options_do_not_show_credentials() -> None:
    options = RegistryOptions.of("http://me:hush@registry", auth="me:hush", token="hush")
    assert "hush" not in repr(options)
    more = RegistryOptions.of("http://registry", security={"basic.auth.user.info": "me:hush"})
    assert "hush" not in repr(more) and "hush" not in str(pickle.dumps(more))


def client(urls: str, **more: Any) -> SchemaRegistry:
    return SchemaRegistry(RegistryOptions.of(urls, backoff_s=0.001, behind_s=0.001, **more))


def test_a_schema_is_asked_for_once(server: Any) -> None:
    server.answers["/schemas/ids/7"] = [(200, {"schema": '"int"'})]
    made = client(server.url)
    assert made.by_id(7) == made.by_id(7) == SchemaSource('"int"')
    assert pickle.loads(pickle.dumps(made)).by_id(7) == SchemaSource('"int"')
    assert len(server.asked) == 2


def test_a_schema_that_another_thread_drops_from_the_cache_at_once_is_returned(server: Any) -> None:
    class Busy(OrderedDict[tuple[object, ...], object]):
        """The cache while other threads fill it: what was set is out a moment later."""

        def __setitem__(self, key: tuple[object, ...], value: object) -> None:
            pass

    registry = client(server.url)
    registry._kept = Busy()
    server.answers["/schemas/ids/1"] = [(200, {"schema": '"string"'})]
    assert registry.by_id(1).text == '"string"'


def test_references_are_resolved_those_that_are_needed_first(server: Any) -> None:
    reference = {"name": "b.proto", "subject": "b", "version": 2}
    deeper = {"name": "c.proto", "subject": "c", "version": 1}
    first = {"schema": "A", "schemaType": "PROTOBUF", "references": [reference]}
    server.answers["/schemas/ids/1"] = [(200, first)]
    server.answers["/subjects/b/versions/2?deleted=true"] = [(200, {"schema": "B", "references": [deeper]})]
    server.answers["/subjects/c/versions/1?deleted=true"] = [(200, {"schema": "C"})]
    found = client(server.url).by_id(1)
    assert found == SchemaSource(
        "A", SchemaType.PROTOBUF, (Reference("b.proto", "b", 2),), {"c.proto": "C", "b.proto": "B"}
    )
    assert list(found.resolved) == ["c.proto", "b.proto"]


def test_references_in_a_circle_end(server: Any) -> None:
    around = {"schema": "A", "references": [{"name": "a", "subject": "a", "version": 1}]}
    server.answers["/schemas/ids/1"] = [(200, around)]
    server.answers["/subjects/a/versions/1?deleted=true"] = [(200, around)]
    with pytest.raises(InvalidSchema, match="do not end"):
        client(server.url).by_id(1)


def test_trouble_that_passes_is_waited_out_and_refusals_are_not(server: Any) -> None:
    good = {"subject": "s/1", "version": 3, "id": 9, "schema": "{}", "schemaType": "JSON"}
    server.answers["/subjects/s%2F1/versions/latest"] = [(503, b"busy"), (500, {"error_code": 50001}), (200, good)]
    made = client(server.url)
    assert made.latest("s/1") == RegisteredVersion("s/1", 3, 9, SchemaSource("{}", SchemaType.JSON))
    with pytest.raises(RegistryError, match="40403") as refused:
        made.by_id(5)
    assert refused.value.status == 404
    with pytest.raises(RegistryError, match="40403"):
        made.by_id(5)
    asked = [path for _, path, _, _ in server.asked]
    assert asked.count("/schemas/ids/5") == 3  # once more for an instance that is behind; then it is known to be none


def test_an_instance_that_is_behind_is_asked_again(server: Any) -> None:
    missing = (404, {"error_code": 40403, "message": "Schema 5 not found"})
    server.answers["/schemas/ids/5"] = [missing, (200, {"schema": '"long"'})]
    assert client(server.url).by_id(5) == SchemaSource('"long"')


def test_an_id_that_never_was_does_not_use_up_the_patience_for_others(server: Any) -> None:
    missing = (404, {"error_code": 40403})
    made = client(server.url)
    for number in range(REGISTRY_WAITS_IN_VAIN_MAX - 1):
        with pytest.raises(RegistryError, match="40403"):
            made.by_id(1000 + number)
    for later in range(1, 20):  # those that come late do not count
        server.answers[f"/schemas/ids/{later}"] = [missing, (200, {"schema": '"long"'})]
        assert made.by_id(later) == SchemaSource('"long"')
    for number in (2000, 2001):
        with pytest.raises(RegistryError, match="40403"):
            made.by_id(number)
    asked = [path for _, path, _, _ in server.asked]
    assert (asked.count("/schemas/ids/2000"), asked.count("/schemas/ids/2001")) == (2, 1)  # enough is enough


def test_what_stays_broken_is_said(server: Any) -> None:
    server.answers["/subjects"] = [(503, {"error_code": 50003, "message": "no leader"})]
    with pytest.raises(RegistryError, match="50003: no leader"):
        client(server.url, attempts=2).subjects()
    with pytest.raises(RegistryUnreachable, match=r"127\.0\.0\.1:9 does not answer"):
        client("http://127.0.0.1:9", attempts=2).subjects()


def test_the_next_instance_is_asked_with_what_the_url_says(server: Any) -> None:
    server.answers["/subjects"] = [(200, ["a"])]
    url = server.url.replace("//", "//us%40er:pass@")
    assert client(f"http://127.0.0.1:9, {url}/").subjects() == ["a"]
    assert server.asked[0][3]["Authorization"] == "Basic " + base64.b64encode(b"us@er:pass").decode()
    assert client(server.url, token="t").subjects() == ["a"]
    assert server.asked[1][3]["Authorization"] == "Bearer t"


def test_schemas_are_registered_once(server: Any) -> None:
    server.answers["/subjects/s/versions"] = [(200, {"id": 4})]
    made = client(server.url)
    source = SchemaSource("syntax", SchemaType.PROTOBUF, (Reference("x", "y", 1),))
    assert made.register("s", source) == made.register("s", source) == 4
    ((method, _, body, headers),) = server.asked
    assert method == "POST" and headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
    references = [{"name": "x", "subject": "y", "version": 1}]
    assert json.loads(body) == {"schema": "syntax", "schemaType": "PROTOBUF", "references": references}


@pytest.mark.parametrize("urls", ["", "localhost:8081", "ftp://x", "http://"])
def test_urls_that_are_none(urls: str) -> None:
    with pytest.raises(ValueError, match="schema registry"):
        RegistryOptions.of(urls)
