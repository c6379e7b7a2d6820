"""A secure broker, registries of it, and requests to them with every kind of header."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.server.security.secured import MODULES, PASSWORDS, Certificates, plain_jaas

from ottla.testing.broker import EmbeddedBroker

SECRET = "a secret of all instances"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


def secure_broker(directory: Path, certificates: Certificates, **more: str) -> EmbeddedBroker:
    """A node without a plaintext port, for the users of `PASSWORDS`."""
    settings = {
        **certificates.node(),
        "listeners": "SASL_SSL://localhost:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain_jaas(users=USERS),
        "connection.failed.authentication.delay.ms": "10",
        "group.min.session.timeout.ms": "100",
    }
    return EmbeddedBroker(directory, settings | {name.replace("_", "."): text for name, text in more.items()})


USERS = {**PASSWORDS, "bob": "bob:secret"}  # a password may contain a colon


def store_settings(certificates: Certificates, user: str = "admin") -> dict[str, str]:
    """The settings of a registry's own connections."""
    module = f"{MODULES}.plain.PlainLoginModule"
    return {
        "kafkastore.security.protocol": "SASL_SSL",
        "kafkastore.ssl.truststore.location": str(certificates.trusted),
        "kafkastore.sasl.mechanism": "PLAIN",
        "kafkastore.sasl.jaas.config": f'{module} required username="{user}" password="{USERS[user]}";',
    }


class Answer(NamedTuple):
    status: int
    content: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> int:
        return int(self.content["error_code"]) if self.status >= 300 else 0


def basic(user: str, password: str | None = None) -> tuple[str, str]:
    given = f"{user}:{USERS[user] if password is None else password}"
    return "Authorization", "Basic " + base64.b64encode(given.encode()).decode()


def ask(
    url: str,
    method: str,
    path: str,
    *headers: tuple[str, str],
    body: Any = None,
    trusted: Path | None = None,
    certificate: Path | None = None,
) -> Answer:
    """Send one request on a connection of its own; headers are sent as they are, also twice."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=trusted)
        if certificate is not None:
            context.load_cert_chain(certificate)
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        data = b"" if body is None else json.dumps(body).encode()
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(data))), *headers):
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read()
        return Answer(answer.status, json.loads(text) if text else None, dict(answer.getheaders()))
    finally:
        connection.close()
