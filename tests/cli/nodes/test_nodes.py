"""`ottla start` and `ottla up` as processes: what they print, how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S

from ottla.cli.nodes import start
from ottla.client.blocking.blocking import Blocking
from ottla.model.resources import Resource

Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start `ottla ...` as a process; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"ONCE": "1", "PYTHONWARNINGS": "default"},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ready_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    assert line.startswith("ready "), line + process.stderr.read()
    return line.split()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_start_serves_and_stops_cleanly(launch: Launch, tmp_path: Path, number: int) -> None:
    process = launch("start", "--data", str(tmp_path / "data"), "--listen=127.0.0.1:0")
    with Blocking(ready_address(process)) as client:
        assert client.send("t", b"v").offset == 0
        assert [record.value for record in client.read("t")] == [b"v"]
    process.send_signal(number)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and out == "" and "Traceback" not in err
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    again = launch("start", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    with Blocking(ready_address(again)) as client:
        assert [record.value for record in client.read("t")] == [b"v"]


def test_start_takes_kafkas_own_file(launch: Launch, tmp_path: Path) -> None:
    port, controller = free_ports(2)
    config = tmp_path / "server.properties"
    config.write_text(
        f"""process.roles=broker,controller
node.id=7
controller.quorum.voters=7@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={tmp_path / "data"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
num.partitons=3
num.replica.fetchers=4
num.network.threads=3
"""
    )
    process = launch("start", "--config", str(config))
    ready_address(process)
    with Blocking(f"127.0.0.1:{port}") as client:
        assert [each.node_id for each in client.admin.nodes.describe().brokers] == [7]
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=WAIT_S)
    assert err.splitlines()[0] == "warning: there is no setting num.partitons, did you mean num.partitions?"
    told = [line for line in err.splitlines() if "without effect" in line]
    assert len(told) == 1 and told[0].endswith(": num.replica.fetchers"), "and not what is set to Kafka's default"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give --config FILE or --data DIR"),
        (["--nope"], 2, "there is no option --nope"),
        (["--data"], 2, "--data needs a value"),
        (["--data", "d", "--listen", "here"], 2, "'here' is not HOST:PORT"),
        (["--data", "d", "--set", "x"], 2, "--set takes NAME=VALUE"),
        (["--config", "missing.properties"], 1, "missing.properties"),
        (["--data", "d", "--set", "num.partitions=many"], 1, "num.partitions"),
    ],
)
def test_start_says_what_is_wrong(launch: Launch, arguments: list[str], code: int, message: str) -> None:
    process = launch("start", *arguments)
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (code, "")
    assert err.startswith("error: ") and message in err and "Traceback" not in err


def test_help_of_start(launch: Launch) -> None:
    for word in ("-h", "--help"):
        out, err = launch("start", word).communicate(timeout=WAIT_S)
        assert "Usage: ottla start" in out and err == ""


def test_a_port_that_is_taken(launch: Launch, tmp_path: Path) -> None:
    first = launch("start", "--data", str(tmp_path / "a"), "--listen", "127.0.0.1:0")
    second = launch("start", "--data", str(tmp_path / "b"), "--listen", ready_address(first))
    _, err = second.communicate(timeout=WAIT_S)
    assert second.returncode == 1 and "Traceback" not in err
    assert "\nerror: " in f"\n{err}" and "\nhint: " in err


def test_options_of_start() -> None:
    short = start.parse(["-c", "f", "-d", "x", "-l", "h:1", "--set", "a=b=c", "--set=d="])
    assert short == start.StartOptions("f", "x", "h:1", ("a=b=c", "d="))
    values = start.node_values(start.StartOptions(None, "x", "h:1", ("a=b=c", "d=")))
    assert values == {"log.dirs": "x", "listeners": "PLAINTEXT://h:1", "a": "b=c", "d": ""}
    assert start.listener("SSL://h:1") == "SSL://h:1"
    assert start.listener(":5") == "PLAINTEXT://127.0.0.1:5"


def test_start_loads_no_cli_machinery(tmp_path: Path) -> None:
    probe = (
        "import sys, signal, os; sys.argv = ['ottla', 'start', '--data', sys.argv[1], '--listen', '127.0.0.1:0']\n"
        "from ottla.cli.nodes import start\n"
        "start.announce = lambda node: (print(sorted(sys.modules)), os.kill(os.getpid(), signal.SIGTERM))\n"
        "from ottla.__main__ import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path / "d")], capture_output=True, text=True, check=True, timeout=WAIT_S
    )
    services = ("'jsonschema'", "'google.protobuf'", "'starlette'", "'uvicorn'", "'h11'")  # of contracts and registries
    for heavy in ("'typer'", "'rich'", "'click'", "'ottla.client.producer.producer'", *services):
        assert heavy not in done.stdout


@pytest.mark.parametrize("words", [(), ("--controllers", "1")])
def test_up_in_a_directory_with_brackets_in_its_name(launch: Launch, tmp_path: Path, words: tuple[str, ...]) -> None:
    """They are tags for Rich, which failed for an end without a beginning."""
    directory = tmp_path / "[b] [" / "x]"
    process = launch(
        "up", "--listen", "127.0.0.1:0", "--registry", "off", "--console", "off", "-d", str(directory), *words
    )
    assert process.stdout is not None
    address = process.stdout.readline().split(" at ")[1].strip()
    with Blocking(address) as client:
        assert client.send("t", b"v").offset == 0
    assert process.stdout.readline().endswith(f" in {directory}\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "stopped cleanly" in out and "Traceback" not in err


def test_up(launch: Launch, tmp_path: Path) -> None:
    process = launch("up", "--listen", "127.0.0.1:0", "--ephemeral")
    assert process.stdout is not None
    address = process.stdout.readline().split(" at ")[1].strip()
    with Blocking(address) as client:
        assert client.send("t", b"v").offset == 0
        (delay,) = client.admin.configs.describe(Resource.broker(1), ["group.initial.rebalance.delay.ms"])
        assert delay.value == "0", "a laptop has few members: none waits for more"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "stopped cleanly" in out and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
