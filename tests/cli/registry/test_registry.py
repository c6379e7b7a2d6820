"""The registry of `ottla up` and `ottla registry`: it comes with the node, and goes with it whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.security.secured import plain_jaas
from tests.support.ports import free_ports
from tests.support.processes.local_cluster import children_of
from tests.support.processes.registry import ask, record, until
from tests.support.waiting import WAIT_S

from ottla.client.admin import Admin
from ottla.testing.broker import EmbeddedBroker

Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start `ottla ...` as a process; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "ottla", *arguments]
        words += ["--console", "off"] if "up" in arguments else []
        pipe = subprocess.PIPE
        environment = os.environ | {"PYTHONWARNINGS": "default"}
        process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=environment)
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def registry_url(process: subprocess.Popen[str]) -> str:
    """Reads what it prints, up to where the registry is."""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if line.startswith("Schema registry at "):
            return line.split(" at ")[1].strip()
    raise AssertionError(process.stderr.read())


def is_listening(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_a_wrong_password_is_final(launch: Launch, tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
    }
    own = plain_jaas(users={"admin": "wrong"})
    lines = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": own}
    file = tmp_path / "registry.properties"
    file.write_text("".join(f"kafkastore.{name}={value}\n" for name, value in lines.items()))
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        told = launch("registry", "-b", broker.bootstrap, "--listen", "127.0.0.1:0", "--config", str(file))
        out, err = told.communicate(timeout=WAIT_S)
    assert told.returncode == 1 and out == "", err
    (line,) = [each for each in err.splitlines() if "Invalid username or password" in each]
    assert "the cluster refuses the registry's user" in line and "WARNING" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_up_has_a_registry_that_ends_with_it(launch: Launch, tmp_path: Path, number: int) -> None:
    process = launch("up", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    url = registry_url(process)
    assert ask(url, "POST", "/subjects/s/versions", {"schema": record("R")}).content["id"] == 1
    process.send_signal(number)
    _, err = process.communicate(timeout=WAIT_S)
    told = [line for line in err.splitlines() if ".stalls: " not in line]  # a busy machine holds everybody up
    assert process.returncode == (0 if number == signal.SIGINT else -number) and told == []
    until(lambda: not is_listening(url), what="the end of the registry")
    again = launch("up", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    assert ask(registry_url(again), "GET", "/subjects").content == ["s"]


def test_a_killed_registry_is_started_again(launch: Launch, tmp_path: Path) -> None:
    process = launch("up", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    first = registry_url(process)
    (child,) = children_of(process.pid)
    os.kill(child, signal.SIGKILL)
    second = registry_url(process)
    # The one that was killed leads until the group has noticed.
    register = lambda: ask(second, "POST", "/subjects/s/versions", {"schema": record("R")}).content.get("id")  # noqa: E731
    assert until(register, what="a registration") == 1
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "started again" in err and "Traceback" not in err, (first, err)


def test_a_taken_port_is_a_warning_and_off_is_off(launch: Launch, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = launch("up", "--listen", "127.0.0.1:0", "--registry", f"127.0.0.1:{port}", "--ephemeral")
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("warning: "))
    assert line.startswith(f"warning: no schema registry: port {port} is taken") and "--registry" in line
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "Ottla is up at" in out
    process = launch("up", "--listen", "127.0.0.1:0", "--registry", "off", "--ephemeral")
    assert process.stdout is not None and process.stdout.readline().startswith("Ottla is up at")
    assert children_of(process.pid) == []
    process.send_signal(signal.SIGINT)
    assert "Schema registry" not in process.communicate(timeout=WAIT_S)[0]
    assert launch("up", "--registry", "nonsense").wait(WAIT_S) == 2


def test_registry_alone(launch: Launch, ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    process = launch("registry", "--listen", "127.0.0.1:0", "--bootstrap", ottla_broker.bootstrap)
    assert process.stdout is not None
    word, url = process.stdout.readline().split()
    assert word == "ready" and ask(url, "GET", "/subjects").content == []
    host_port = url.removeprefix("http://")
    second = launch("registry", "--listen", host_port, "--bootstrap", ottla_broker.bootstrap)
    _, err = second.communicate(timeout=WAIT_S)
    assert second.returncode == 1 and f"cannot listen on {host_port}" in err and "Traceback" not in err
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    late = launch("registry", "--listen", "127.0.0.1:0", "--bootstrap", f"127.0.0.1:{free_ports(1)[0]}")
    assert late.stderr is not None
    until(lambda: "broker cannot be asked" in (late.stderr.readline() if late.stderr else ""))
    late.send_signal(signal.SIGTERM)
    assert late.wait(WAIT_S) == 0


def test_a_session_timeout_that_the_broker_refuses_ends_it(launch: Launch, ottla_broker: EmbeddedBroker) -> None:
    options = ("--listen", "127.0.0.1:0", "--bootstrap", ottla_broker.bootstrap, "--session-timeout", "1ms")
    process = launch("registry", *options)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1 and err.count("refuses a session timeout of 1 ms") == 1 and "Traceback" not in err


def test_a_topic_that_loses_schemas_is_refused(launch: Launch, ottla_broker: EmbeddedBroker) -> None:
    async def create() -> None:
        async with Admin(ottla_broker.bootstrap) as admin:
            await admin.topics.create("_schemas", 1, configs={"cleanup.policy": "delete"})

    asyncio.run(create())
    process = launch("registry", "--listen", "127.0.0.1:0", "--bootstrap", ottla_broker.bootstrap)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert "error: topic _schemas has cleanup.policy=delete" in err and "Traceback" not in err
