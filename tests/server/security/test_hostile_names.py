"""Names that clients choose, and rules that they are matched with: nobody waits for a name that is made to be slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.server.security.secured import Certificates
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of
from tests.support.requests.raw import Closed, RawConnection

from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
# Kafka's own example of a rule.
SIX_FIELDS = "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L"
FIELDS = (NameOID.STATE_OR_PROVINCE_NAME, NameOID.LOCALITY_NAME, NameOID.ORGANIZATION_NAME)
FIELDS += (NameOID.ORGANIZATIONAL_UNIT_NAME,)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def node(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    settings = certificates.node() | {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": f"{SIX_FIELDS}, RULE:^CN=(node|alice)$/$1/",
    }
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        yield node


@pytest.mark.parametrize("repeated", [2, 45, 220])  # the last: 4,000 characters
def test_a_certificate_with_a_hostile_name(node: MeasuredNode, certificates: Certificates, repeated: int) -> None:
    fields = [x509.NameAttribute(field, "x") for field in FIELDS] * repeated
    subject = x509.Name([*fields, x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    hostile, honest = certificates.context, certificates.context
    hostile.load_cert_chain(certificates.authority.named(subject).write(certificates.directory, "hostile"))
    honest.load_cert_chain(certificates.authority.client("alice").write(certificates.directory, "alice"))

    def connect() -> None:
        with suppress(Closed, OSError), RawConnection(node.bootstrap, tls=hostile) as connection:
            assert connection.call(HELLO, 3) is None, "no rule applies"
        with RawConnection(node.bootstrap, tls=honest) as connection:
            assert connection.call(HELLO, 3).error_code == 0  # type: ignore[attr-defined]

    worst = best_of(lambda: node.cost(connect))
    assert worst.cpu_ms <= BUDGET_MS, worst
