"""`ottla console`: whom it lets in, and what it says it cannot reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import invoke, started

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


def test_it_serves_and_warns_of_whom_it_cannot_reach() -> None:
    nobody = "127.0.0.1:1"
    with started("console", "--listen", "127.0.0.1:0", "-b", nobody, "--registry", f"http://{nobody}") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("ready http://127.0.0.1:")
        told: list[str] = []
        while sum(line.startswith("hint: ") for line in told) < 2:
            line = process.stderr.readline()
            assert line, told
            told.append(line)
        warnings = [line for line in told if line.startswith("warning: ")]
        assert any(f"the cluster at {nobody} cannot be reached" in line for line in warnings)
        assert any(f"the schema registry at {nobody} does not answer" in line for line in warnings)
