"""Clients of a registry that takes tokens or certificates: Ottla's, the command line, and Confluent's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.cli.conftest import invoke
from tests.registry.security.test_https import RULES, jwk, token
from tests.server.security.secured import Certificates
from tests.support.processes.registry import record

from ottla.client.registry import RegistryError, RegistryOptions, SchemaRegistry
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry


class Shop(NamedTuple):
    """A registry, and what its clients need: with Java's and with Confluent's names; the first are without a login."""

    url: str
    bootstrap: str
    trust: Mapping[str, str]
    login: Mapping[str, str]
    confluent: Mapping[str, str]
    secret: str

    def ours(self) -> dict[str, str]:
        return {**self.trust, **self.login}


@pytest.fixture(scope="module", params=["bearer", "ssl"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp(request.param)
    certificates = Certificates.make(directory / "certificates")
    key = rsa.generate_private_key(65_537, 2_048)
    (directory / "keys.json").write_text(json.dumps({"keys": [jwk("one", key)]}))
    identity = certificates.authority.client("alice")
    store = identity.write(directory, "alice")
    bearer = token("one", key)
    if request.param == "bearer":
        settings = {"sasl.oauthbearer.jwks.endpoint.url": (directory / "keys.json").as_uri()}
        (directory / "token").write_text(bearer)
        login = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": f"file:{directory / 'token'}"}
        confluent = {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": bearer,
            "bearer.auth.logical.cluster": "lsrc-1",
            "bearer.auth.identity.pool.id": "pool-1",
        }
    else:
        settings = {"ssl.client.auth": "requested", "ssl.principal.mapping.rules": RULES}
        login = {"schema.registry.ssl.keystore.type": "PEM", "schema.registry.ssl.keystore.location": str(store)}
        confluent = {"ssl.certificate.location": str(store), "ssl.key.location": str(store)}
    own = {**certificates.node("web"), "listeners": "https://127.0.0.1:0", "authentication.method": request.param}
    trust = {
        "schema.registry.ssl.truststore.type": "PEM",
        "schema.registry.ssl.truststore.location": str(certificates.trusted),
    }
    with EmbeddedBroker(directory / "broker") as broker:
        registry = Registry(broker.bootstrap, settings={**own, **settings}).start()
        trusting = {"url": registry.url, "ssl.ca.location": str(certificates.trusted)}
        secret = bearer if request.param == "bearer" else identity.key_pem().splitlines()[1]
        yield Shop(registry.url, broker.bootstrap, trust, login, {**trusting, **confluent}, secret)
        registry.stop()


def test_ottlas_client(shop: Shop) -> None:
    client = SchemaRegistry(RegistryOptions.of(shop.url, shop.ours()))
    schema_id = client.register("ours-value", SchemaSource(record("Ours")))
    assert json.loads(client.by_id(schema_id).text) == json.loads(record("Ours"))
    assert shop.secret not in repr(RegistryOptions.of(shop.url, shop.ours()))
    stranger = SchemaRegistry(RegistryOptions.of(shop.url, dict(shop.trust)))
    with pytest.raises(RegistryError, match="40101"):
        stranger.register("ours-value", SchemaSource(record("Ours")))


def test_confluents_client(shop: Shop) -> None:
    with SchemaRegistryClient(dict(shop.confluent)) as client:
        schema_id = client.register_schema("theirs-value", Schema(record("Theirs"), "AVRO"))
        assert json.loads(str(client.get_schema(schema_id).schema_str)) == json.loads(record("Theirs"))
    anonymous = {name: value for name, value in shop.confluent.items() if name in ("url", "ssl.ca.location")}
    with SchemaRegistryClient(anonymous) as stranger, pytest.raises(SchemaRegistryError) as refused:
        stranger.get_subjects()
    assert refused.value.http_status_code == 401


@pytest.mark.parametrize("place", ["file", "profile"])
def test_commands(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """With a file of properties, and with a profile; neither shows its secrets."""
    words = ["--command-config", str(tmp_path / "client.properties")]
    if place == "file":
        settings = {"bootstrap.servers": shop.bootstrap, "schema.registry.url": shop.url, **shop.ours()}
        (tmp_path / "client.properties").write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        words = ["--profile", "shop"]
        (tmp_path / "ottla").mkdir()
        lines = {"bootstrap": shop.bootstrap, "registry": shop.url, **shop.ours()}
        text = "[shop]\n" + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in lines.items())
        (tmp_path / "ottla" / "profiles.toml").write_text(text)
        (tmp_path / "ottla" / "profiles.toml").chmod(0o600)
        shown = invoke("profile", "show", "shop")
        assert shown.code == 0 and shop.secret not in shown.out + shown.err
    (tmp_path / "schema.avsc").write_text(record("Command"))
    subject = f"commands-{place}-value"
    runs = [
        invoke(*words, "schema", "register", subject, str(tmp_path / "schema.avsc")),
        invoke(*words, "topic", "create", f"commands-{place}"),
        invoke(*words, "produce", f"commands-{place}", '{"f": "x"}', "--value", "avro"),
        invoke(*words, "consume", f"commands-{place}", "--value", "avro"),
        invoke(*words, "schema", "list", "--json"),
    ]
    assert [each.code for each in runs] == [0] * 5, [each.err for each in runs]
    assert subject in {each["subject"] for each in runs[-1].json}
    assert not [each for each in runs if shop.secret in each.out + each.err]
    refused = invoke("schema", "list", "-u", shop.url)
    assert refused.code == 1 and "Traceback" not in refused.err
