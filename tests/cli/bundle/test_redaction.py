"""Secrets in every form that we know are taken out of texts, and what is no secret stays."""

from __future__ import annotations

import pytest

from ottla.cli.bundle.plain_values import PlainValues
from ottla.cli.bundle.redaction import Redaction, is_secret
from ottla.client.security.secret import HIDDEN

SECRET = "Tr0ub4dor&3"


@pytest.mark.parametrize(
    "text",
    [
        "sasl.password=Tr0ub4dor&3",
        "ssl.keystore.password : Tr0ub4dor&3",
        "  ssl.key.password=Tr0ub4dor&3 with more, and Tr0ub4dor&3 again",
        'password="Tr0ub4dor&3"',
        "password='Tr0ub4dor&3 and a space'",
        'password = \\"Tr0ub4dor&3\\";',
        '"db_password": "Tr0ub4dor&3", "host": "h"',
        '{\\"client_secret\\":\\"Tr0ub4dor&3\\"}',
        "connected with user=x password=Tr0ub4dor&3, waiting",
        "kafka --password Tr0ub4dor&3 --topic t",
        "api_key=Tr0ub4dor&3",
        "x-api-key: Tr0ub4dor&3",
        "basic.auth.user.info=alice:Tr0ub4dor&3",
        "http://alice:Tr0ub4dor&3@registry:8081/subjects",
        "amqp://alice:Tr0ub4dor&3/with@odd@host/path",
        "http://Tr0ub4dor&3@host",
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=Tr0ub4dor&3;",
        "a.b.ScramLoginModule required\n  username=a\n  other=Tr0ub4dor&3;",
        "a.b.PlainLoginModule required user_alice=Tr0ub4dor&3",
        'user_alice="Tr0ub4dor&3"',
        "Authorization: Basic VHIwdWI0ZG9yJjM= Tr0ub4dor&3",
        "x-honeycomb-team: Tr0ub4dor&3",
        "pushed with {'x-honeycomb-team': 'Tr0ub4dor&3'}",
        "ottla.otel.headers=x-scope=a,x-team=Tr0ub4dor&3",
        "export OTEL_EXPORTER_OTLP_TRACES_HEADERS=x-team=Tr0ub4dor&3",
        "signoz-ingestion-key=Tr0ub4dor&3",
        "AccountName=a;AccountKey=Tr0ub4dor&3;EndpointSuffix=b",
        "GET https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=Tr0ub4dor&3",
        "-----BEGIN PRIVATE KEY-----\nTr0ub4dor&3\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\\nTr0ub4dor&3\\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nTr0ub4dor&3\nand the log ends",
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    found = Redaction().text(text)
    assert SECRET not in found and HIDDEN in found


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdefghijklmnop", "abcdefghijklmnop"),
        ("Basic YWxpY2U6c2VjcmV0 was refused", "YWxpY2U6c2VjcmV0"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln expired", "eyJzdWIiOiJhIn0"),
        ("used AKIAIOSFODNN7EXAMPLE for s3", "AKIAIOSFODNN7EXAMPLE"),
        ("https://a.blob.core.windows.net/c/k?sv=2024&sig=aBcDeF%3D&se=2027 failed", "aBcDeF"),
        ("https://h/k?X-Goog-Signature=abcdef0123&x=y", "abcdef0123"),
        ("MIIEvQIBADANBgkqhkiG\nw0BAQEFAASC\n-----END PRIVATE KEY-----\nstarted", "w0BAQEFAASC"),
    ],
)
def test_other_forms(text: str, secret: str) -> None:
    assert secret not in Redaction().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "12:00:00.000 INFO server.node: broker 1 is ready at 127.0.0.1:9092",
        "password null, token: false",
        "delegation.token.max.lifetime.ms=604800000",
        "the author of this; authorizer.class.name=ottla",
        "http://registry:8081/subjects/a-value/versions",
        "lost the connection to 10.0.0.7:9093: Connection reset by peer",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redaction().text(text) == text


def test_a_secret_that_was_seen_is_known_everywhere() -> None:
    redaction = Redaction()
    shown = redaction.settings(
        {
            "ssl.keystore.password": SECRET,
            "listener.name.x.plain.sasl.jaas.config": 'a.LoginModule required username="u" password="correct-horse";',
            "my.tool.passphrase": "staple!",
            "delegation.token.max.lifetime.ms": "604800000",
            "node.id": "1",
        }
    )
    assert {name for name, value in shown.items() if value == HIDDEN} == {
        "ssl.keystore.password",
        "listener.name.x.plain.sasl.jaas.config",
        "my.tool.passphrase",
    }
    assert (
        redaction.text(f"tried {SECRET}, then correct-horse and staple!")
        == f"tried {HIDDEN}, then {HIDDEN} and " + HIDDEN
    )


def test_values_in_headers_are_known_everywhere() -> None:
    redaction = Redaction()
    headers = "x-honeycomb-team=hcaik%2B123, authorization=Bearer%20open-sesame ,x-scope=prod"
    names = ("ottla.otel.headers", "OTEL_EXPORTER_OTLP_HEADERS")
    assert redaction.settings(dict.fromkeys(names, headers)) == dict.fromkeys(names, HIDDEN)
    told = redaction.text("sent hcaik%2B123, that is hcaik+123, and open-sesame to prod")
    assert told == f"sent {HIDDEN}, that is {HIDDEN}, and {HIDDEN} to prod"


def test_names() -> None:
    hidden = "sasl.password x.token DB_PASSWORD AWS_SECRET_ACCESS_KEY apiKey GITHUB_TOKEN basic.auth.user.info pwd"
    assert all(map(is_secret, hidden.split())), [each for each in hidden.split() if not is_secret(each)]
    shown = "node.id log.dirs authorizer.class.name PATH group_id lag records sasl.enabled.mechanisms compass"
    assert not any(map(is_secret, shown.split())), [each for each in shown.split() if is_secret(each)]


def test_parts_of_values_are_judged_by_their_names() -> None:
    found = PlainValues(Redaction()).of({"password": "p", "rows": [{"token": "t", "n": 1}], "url": "http://u:p@h"})
    assert found == {"password": HIDDEN, "rows": [{"token": HIDDEN, "n": 1}], "url": f"http://{HIDDEN}@h"}
