"""A node without security does not load what security needs: it would start more slowly and take more memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from ottla.testing.broker import EmbeddedBroker
from tests.support.requests.raw import RawConnection
from tests.server.talk import create, produce

with EmbeddedBroker(sys.argv[1]) as broker, RawConnection(broker.bootstrap) as connection:
    create(connection, "t")
    assert produce(connection, "t", [b"x"]) == (0, 0)
print(*sorted(name for name in sys.modules if name.startswith(tuple(sys.argv[2].split(",")))))
"""
SECURITY = (
    "cryptography",
    "ottla.client.security",
    "ottla.security.sasl.scram.server",
    "ottla.security.jwt",
    "ottla.server.api.guard",
    "ottla.server.net.sasl_connection",
    "ottla.server.security.listener_tls",
    "ottla.server.security.listener_sasl",
)


def test_a_plain_node_loads_no_security(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "data"), ",".join(SECURITY)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
