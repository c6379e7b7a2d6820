"""Listeners with SASL, without TLS and with it: a test that asks for them runs twice."""

from pathlib import Path

import pytest
from tests.server.security.secured import Certificates, SaslListeners


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def sasl(request: pytest.FixtureRequest, tmp_path: Path) -> SaslListeners:
    return SaslListeners(request.param, Certificates.make(tmp_path / "certificates"))
