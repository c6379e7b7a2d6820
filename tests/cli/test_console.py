"""`ottla console`: whom it lets in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import invoke

TOKENS = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \\
  unsecuredLoginStringClaim_sub="ops";
"""
CERTIFICATE = """security.protocol=SSL
ssl.keystore.location={path}
"""


@pytest.mark.parametrize("settings", [TOKENS, CERTIFICATE])
def test_nobody_acts_as_the_user_of_a_profile_without_being_asked(tmp_path: Path, settings: str) -> None:
    (tmp_path / "me.pem").write_text("-----BEGIN CERTIFICATE-----")
    config = tmp_path / "client.properties"
    config.write_text(settings.format(path=tmp_path / "me.pem"))
    refused = invoke("--command-config", str(config), "console", "--listen", "127.0.0.1:0")
    assert (refused.code, "nobody can sign in" in refused.err, "--as-me" in refused.err) == (1, True, True)
