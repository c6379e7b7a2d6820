"""`ottla user`: users that a SCRAM client could log in as, and passwords that nobody sees."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke

from ottla.security.sasl.scram.credentials import ScramCredential, ScramMechanism, credential_of
from ottla.testing.broker import EmbeddedBroker

Ottla = Callable[..., Run]
SHA_256, SHA_512 = ScramMechanism
CONTROL_D = "\x04"


def has_password(broker: EmbeddedBroker, user: str, mechanism: ScramMechanism, password: str) -> bool:
    """Whether the node has stored the credential of this password."""
    assert broker.node is not None
    record = broker.node.metadata.state.scram[user, mechanism]
    stored = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
    return credential_of(password, stored.salt, stored.iterations, mechanism) == stored


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("first password\n")
    return path


def test_a_life_of_a_user(
    ottla: Ottla, ottla_broker: EmbeddedBroker, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ottla("user", "list", "--json").json == []
    told = ottla("user", "add", "alice", "--password-file", str(secret))
    assert "added user alice" in told.err and "first password" not in told.out + told.err
    assert all(has_password(ottla_broker, "alice", each, "first password") for each in ScramMechanism)
    assert "there is a user alice already" in ottla("user", "add", "alice", "--password-file", str(secret), code=1).err
    monkeypatch.setenv("OTTLA_USER_PASSWORD", "two")
    ottla("user", "add", "bob", "-m", "SCRAM-SHA-512", "--iterations", "8192")
    assert has_password(ottla_broker, "bob", SHA_512, "two")
    assert ottla("user", "list", "--json").json == [
        {"user": "alice", "mechanisms": {"SCRAM-SHA-256": 16384, "SCRAM-SHA-512": 16384}},
        {"user": "bob", "mechanisms": {"SCRAM-SHA-512": 8192}},
    ]
    assert ottla("user", "list").lines[1:] == [
        "alice\tSCRAM-SHA-256\t16384",
        "alice\tSCRAM-SHA-512\t16384",
        "bob\tSCRAM-SHA-512\t8192",
    ]
    ottla("user", "passwd", "bob", "--password-file", "-", stdin="three\n")
    assert has_password(ottla_broker, "bob", SHA_512, "three")
    assert len(ottla("user", "list", "--json").json[1]["mechanisms"]) == 1, "only those that the user has"
    told = ottla("user", "passwd", "alice", "-m", "SCRAM-SHA-256", "--password-file", "-", stdin="four\n")
    assert "changed the password of user alice (SCRAM-SHA-256)" in told.err
    assert "SCRAM-SHA-512 of user alice keeps the old password" in told.err
    assert "keeps" not in ottla("user", "passwd", "alice", "--password-file", "-", stdin="four\n").err
    assert "removed SCRAM-SHA-256 of user alice" in ottla("user", "remove", "alice", "-m", "SCRAM-SHA-256", "--yes").err
    assert "nobody can agree" in ottla("user", "remove", "alice", code=1).err
    ottla("user", "remove", "alice", "--yes")
    assert [each["user"] for each in ottla("user", "list", "--json").json] == ["bob"]


def test_nobody_removes_the_own_user_by_mistake(
    ottla_broker_factory: Callable[..., EmbeddedBroker], secret: Path, tmp_path: Path
) -> None:
    broker = ottla_broker_factory(
        **{
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        }
    )
    assert broker.node is not None
    plain, secured = (f"{host}:{port}" for host, port in broker.node.addresses)
    for user in ("admin", "alice"):
        assert invoke("user", "add", user, "--password-file", str(secret), "-b", plain).code == 0
    config = tmp_path / "admin.properties"
    config.write_text(
        f"bootstrap.servers={secured}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username=admin\nsasl.password=first password\n"
    )
    config.chmod(0o600)

    def remove(*words: str) -> Run:
        return invoke("--command-config", str(config), "user", "remove", *words)

    refused = remove("admin", "--yes")
    error, hint = refused.err.splitlines()
    assert refused.code == 1 and "this command is logged in as user admin" in error
    assert hint == "hint: remove it as another user, or give --force"
    assert remove("admin", "--yes", "-m", "SCRAM-SHA-256").code == 0, "it does not log in with this one"
    assert remove("alice", "--yes").code == 0
    assert remove("admin", "--force").code == 0
    assert invoke("user", "list", "--json", "-b", plain).json == []


def test_a_password_is_asked_for_twice_and_not_shown(ottla_broker: EmbeddedBroker) -> None:
    def typed(*lines: str) -> tuple[int, str]:
        """The exit code and everything that the terminal showed."""
        ours, theirs = pty.openpty()
        words = [sys.executable, "-m", "ottla", "user", "add", "carol", "-b", ottla_broker.bootstrap]
        environment = {name: value for name, value in os.environ.items() if name != "OTTLA_USER_PASSWORD"}
        with subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment
        ) as process:
            os.close(theirs)
            shown = b""
            for prompt, line in zip((b"Password of carol: ", b"The same again: "), lines, strict=False):
                while prompt not in shown:
                    shown += os.read(ours, 1_000)
                os.write(ours, line.encode() + (b"" if line == CONTROL_D else b"\n"))
            while True:
                try:
                    more = os.read(ours, 1_000)
                except OSError:  # Linux: the other end is closed
                    break
                if not more:
                    break
                shown += more
            code = process.wait()
        os.close(ours)
        return code, shown.decode()

    code, shown = typed(CONTROL_D)
    assert code == 1 and "no password was typed" in shown
    code, shown = typed("typed secret", "another secret")
    assert code == 1 and "the two passwords differ" in shown
    code, shown = typed("typed secret", "typed secret")
    assert code == 0 and "added user carol" in shown and "secret" not in shown
    assert has_password(ottla_broker, "carol", SHA_256, "typed secret")


SECRET = "SuperSecret-caf"


def test_what_is_no_password_is_refused_and_not_shown(
    ottla: Ottla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "given"
    for content, told in [
        (f"{SECRET}\xe9\n".encode("latin-1"), "is not text in UTF-8"),
        (f"{SECRET}\n{SECRET}\n".encode(), "more than one line"),
        (b"   \n", "only blanks"),
        (b"", "the password is empty"),
        (SECRET.encode() * 10_000, "more than one line"),
    ]:
        file.write_bytes(content)
        found = [
            ottla("user", "add", "lat1", "--password-file", "-", stdin=content, code=1),
            ottla("user", "add", "lat1", "--password-file", str(file), code=1),
        ]
        for each in found:
            assert told in each.err and SECRET not in each.out + each.err
    assert ottla("user", "list", "--json").json == []
    monkeypatch.setenv("OTTLA_USER_PASSWORD", f"{SECRET}\udce9")
    shown = ottla("user", "add", "lat1", code=1)
    assert "the password is not text in UTF-8" in shown.err and SECRET not in shown.out + shown.err


def test_quotas(ottla: Ottla) -> None:
    assert ottla("quota", "list", "--json").json == []
    ottla("quota", "set", "--user", "alice", "producer_byte_rate=10MiB", "request_percentage=12.5")
    idle = ottla("quota", "set", "--user", "alice", "--client-id", "busy", "request_percentage=250")
    assert "warning: request_percentage 250 limits nothing" in idle.err
    ottla("quota", "remove", "--user", "alice", "--client-id", "busy")
    ottla("quota", "set", "--user", "alice", "--client-id", "app", "consumer_byte_rate=1000")
    ottla("quota", "set", "--default-user", "controller_mutation_rate=5")
    ottla("quota", "set", "--default-ip", "connection_creation_rate=50")
    assert set(ottla("quota", "list").lines[1:]) == {
        "alice\t-\t-\tproducer_byte_rate\t10485760",
        "alice\t-\t-\trequest_percentage\t12.5",
        "alice\tapp\t-\tconsumer_byte_rate\t1000",
        "(default)\t-\t-\tcontroller_mutation_rate\t5",
        "-\t-\t(default)\tconnection_creation_rate\t50",
    }
    assert len(ottla("quota", "list", "--user", "alice", "--json").json) == 2
    assert ottla("quota", "list", "--default-user", "--json").json == [
        {"user": None, "quotas": {"controller_mutation_rate": 5}}
    ]
    ottla("quota", "remove", "--user", "alice", "request_percentage")
    told = ottla("quota", "remove", "--user", "alice", "--client-id", "app")
    assert "removed consumer_byte_rate of user alice, client-id app" in told.err
    assert ottla("quota", "list", "--user", "alice", "--json").json == [
        {"user": "alice", "quotas": {"producer_byte_rate": 10 * 1024 * 1024}}
    ]


def test_tokens(ottla_broker_factory: Callable[..., EmbeddedBroker], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a PLAINTEXT listener nobody gets tokens, so the test lets the node believe that its client has logged in."""
    broker = ottla_broker_factory(**{"delegation.token.secret.key": "key"})
    handlers = [f"handlers.security.{verb}_delegation_token" for verb in ("create", "describe")]
    for module in ("api.security.token_requests", *handlers):
        monkeypatch.setattr(f"ottla.server.{module}.may_ask_for_tokens", lambda context: True)

    def ottla(*words: str) -> Run:
        done = invoke("token", *words, env={"OTTLA_BOOTSTRAP": broker.bootstrap})
        assert done.code == 0, done.err
        return done

    (made,) = ottla("create", "--renewer", "User:bob", "--max-life", "2d", "--json").json
    assert (made["owner"], made["requester"], made["renewers"]) == ("User:ANONYMOUS", "User:ANONYMOUS", ["User:bob"])
    assert made["max_ms"] - made["issued_ms"] == 2 * 86_400_000
    (listed,) = ottla("list", "--json").json
    assert "password" not in listed and listed == {key: made[key] for key in listed}
    assert made["password"] not in ottla("list").out
    assert made["password"] in ottla("list", "--secrets").out
    assert ottla("list", "--owner", "User:nobody", "--json").json == []
    assert "is valid until" in ottla("renew", made["id"], "--for", "1h").err
    (renewed,) = ottla("list", "--owner", "User:bob", "--json").json
    assert 0 < renewed["expires_ms"] - made["issued_ms"] < made["expires_ms"] - made["issued_ms"]
    assert "expires" in ottla("expire", made["id"], "--in", "10m").err
    assert "is removed" in ottla("expire", made["id"]).err
    assert ottla("list", "--json").json == []


def test_no_token_is_made_whose_password_nobody_sees() -> None:
    command = f"exec {shlex.quote(sys.executable)} -m ottla token create -b 127.0.0.1:1 >&-"
    done = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: standard output is closed")
