"""A real OpenID Connect provider: npm's oidc-provider behind tests/node/oidc.js."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.tools import NODE_MODULES, ROOT


class OidcProvider:
    """It gives tokens to clients by name; the secret of each is its name with "-secret" behind it.

    `identity` is a PEM file with its key and certificate; with it, it speaks https.
    """

    def __init__(
        self, log_path: Path, clients: Sequence[str], *, lifetime_s: int = 600, identity: Path | None = None
    ) -> None:
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                ["node", str(ROOT / "tests" / "node" / "oidc.js"), str(lifetime_s), str(identity or ""), *clients],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "NODE_PATH": str(NODE_MODULES)},
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, log_path.read_text()[-4000:]
        told = json.loads(line)
        self.issuer = str(told["issuer"])
        self.audience = str(told["audience"])
        self.keys_url = str(told["jwks"])
        self.token_url = str(told["token"])

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


def bearer_listener(provider: OidcProvider) -> dict[str, str]:
    """The settings of a node whose listeners take the provider's tokens."""
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.issuer": provider.issuer,
        "sasl.oauthbearer.expected.audience": provider.audience,
        "sasl.oauthbearer.clock.skew.seconds": "2",
        "connection.failed.authentication.delay.ms": "1",
    }
