"""What `ottla up` starts beside its nodes: the console is told, knows the registry, and ends with `ottla up`."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.console.consoles import Visitor
from tests.support.processes.local_cluster import LocalCluster, children_of, is_alive
from tests.support.waiting import WAIT_S, until

from ottla.cli.beside.services import ServiceAddress, Services, services_at
from ottla.cli.beside.sibling import SiblingProcess, SiblingReports
from ottla.model import limits
from ottla.operations.addresses import host_and_port

Launch = Callable[..., "subprocess.Popen[str]"]
TOLD = "Console at "


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start `ottla up ...` as a process; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "ottla", "up", "--listen", "127.0.0.1:0", "--ephemeral", *arguments]
        pipe = subprocess.PIPE
        # A profile of the user is for other clusters.
        mine = {"OTTLA_PROFILE": "no-such-profile", "OTTLA_BOOTSTRAP": "127.0.0.1:1"}
        process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=os.environ | mine)
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def told(process: subprocess.Popen[str], what: str = TOLD) -> str:
    """Read what it prints, up to the address that is wanted."""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if line.startswith(what):
            return line.removeprefix(what).strip()
    raise AssertionError(process.stderr.read())


def words_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_up_has_a_console_that_ends_with_it(launch: Launch, number: int) -> None:
    process = launch()
    registry = told(process, "Schema registry at ")
    url = told(process)
    shown = Visitor(url).get("/")
    assert (shown.status, "Overview" in shown.words) == (200, True)
    children = children_of(process.pid)
    (console,) = [each for each in children if "console" in words_of(each)]
    assert words_of(console)[words_of(console).index("--registry") + 1] == registry
    process.send_signal(number)
    _, err = process.communicate(timeout=WAIT_S)
    said = [line for line in err.splitlines() if ".stalls: " not in line]  # a busy machine holds everybody up
    assert process.returncode == (0 if number == signal.SIGINT else -number) and said == []
    until(lambda: not any(is_alive(each) for each in children), bool)


def test_a_taken_port_is_a_warning_and_off_is_off(launch: Launch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = launch("--registry", "off", "--console", f"127.0.0.1:{port}")
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("warning: "))
    assert line.startswith(f"warning: no console: port {port} is taken (--console HOST:PORT takes another address")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "Ottla is up at" in out and TOLD not in out
    process = launch("--registry", "off", "--console", "off")
    assert process.stdout is not None and process.stdout.readline().startswith("Ottla is up at")
    assert children_of(process.pid) == []


def test_other_machines_reach_no_console_without_users(launch: Launch) -> None:
    process = launch("--registry", "off", "--console", "0.0.0.0:0")
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("warning: "))
    assert "no console: 0.0.0.0 is reached from other machines, and nobody would have to sign in" in line


def test_a_killed_console_is_started_again(launch: Launch) -> None:
    process = launch("--registry", "off")
    told(process)
    (console,) = children_of(process.pid)
    os.kill(console, signal.SIGKILL)
    assert Visitor(told(process)).get("/").status == 200
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "warning: no console: it ended (-9) and is started again" in err


def test_a_secure_cluster_has_a_console_with_its_users(tmp_path: Path) -> None:
    data = tmp_path / "data"
    cluster = LocalCluster(data, "--secure", "--brokers", "2", "--registry", "127.0.0.1:0", "--console", "127.0.0.1:0")
    try:
        url = cluster.wait_for(TOLD).removeprefix(TOLD)
        password = (data / "secure" / "admin.password").read_text().strip()
        (console,) = [each for each in children_of(cluster.pid) if "console" in words_of(each)]
        assert not any(password in each for each in words_of(console)), "everybody can read a command line"
        assert url.startswith("https://127.0.0.1:")
        visitor = Visitor(url, ssl.create_default_context(cafile=data / "secure" / "ca.pem"))
        assert "Sign in" in visitor.get("/").words
        refused = visitor.send("/sign-in", "/sign-in", user="admin", password="guess")
        assert (refused.status, "the cluster refuses this user" in refused.words) == (403, True)
        shown = visitor.send("/sign-in", "/sign-in", user="admin", password=password)
        assert (shown.status, shown.path) == (200, "/")
    finally:
        assert cluster.stop() == 0
    until(lambda: not is_alive(console), bool)


def test_where_they_listen() -> None:
    def at(registry: str | None, console: str | None, host: str, port: int) -> Services:
        return services_at(registry, console, (host, port), host_and_port)

    usual = Services(ServiceAddress("::1", 8081), ServiceAddress("127.0.0.1", 8090))
    assert at(None, None, "::1", 9092) == usual
    assert at(None, None, "h", 0) == Services(ServiceAddress("h", 0), ServiceAddress("127.0.0.1", 0))
    assert at("off", "off", "h", 9092) == Services(None, None)
    given = Services(ServiceAddress("a", 1, is_given=True), ServiceAddress("::1", 2, is_given=True))
    assert at("a:1", "[::1]:2", "h", 0) == given
    assert str(given.console) == "[::1]:2"


def test_a_process_that_is_stopped_before_it_starts_never_starts() -> None:
    may_go_on = threading.Event()
    said: list[str] = []

    def words() -> list[str]:
        may_go_on.wait(WAIT_S)
        return ["this"]

    process = SiblingProcess("late", words, SiblingReports(said.append, said.append))
    process.ask_to_stop()
    may_go_on.set()
    process.stop()
    assert said == []


def test_a_process_that_ends_without_a_word_is_told() -> None:
    said: list[str] = []
    process = SiblingProcess("none", lambda: ["no_such_module_at_all"], SiblingReports(said.append, said.append))
    until(lambda: said, bool)
    process.stop()
    assert said == ["it ended (1)"]


# Puts something away for longer than a process usually may, when its standard input ends.
SLOW = """
import pathlib, sys, time
print("ready x", flush=True)
sys.stdin.read()
time.sleep(0.7)
pathlib.Path({!r}).touch()
"""


@pytest.mark.parametrize(("stop_s", "has_ended"), [(0.1, False), (WAIT_S, True)])
def test_a_process_has_the_time_it_needs_to_end(tmp_path: Path, stop_s: float, has_ended: bool) -> None:
    done, said = tmp_path / "done", list[str]()
    (tmp_path / "slow_to_end.py").write_text(SLOW.format(str(done)))
    words = ["timeit", "-n1", "-r1", f"import runpy; runpy.run_path({str(tmp_path / 'slow_to_end.py')!r})"]
    process = SiblingProcess("slow", lambda: words, SiblingReports(said.append, said.append), stop_s)
    until(lambda: said, bool)
    process.stop()
    assert done.exists() == has_ended


def test_the_console_may_put_away_what_its_sessions_have_set() -> None:
    off = Services(None, ServiceAddress("127.0.0.1", 0)).start("127.0.0.1:1")
    try:
        (console,) = off._processes
        assert console._stop_s > limits.CONSOLE_CLOSE_S
    finally:
        off.stop()
