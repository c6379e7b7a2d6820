"""Directories and addresses that cannot be had: one line, a hint, and nothing is written."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from ottla.cli.nodes import start
from ottla.cli.nodes.local_cluster import free_ports
from ottla.log.files.disk import StorageError
from ottla.operations.addresses import host_and_port
from ottla.server import process
from ottla.server.storage.directories import open_directories
from ottla.sim.world.disk import SimDisk


def told(text: str) -> tuple[str, str]:
    first, second = text.splitlines()
    assert first.startswith("error: ") and second.startswith("hint: ")
    return first, second


def test_a_cluster_leaves_the_folder_of_somebody_else_alone(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("mine")
    run = invoke("up", "--brokers", "3", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert run.code == 1
    assert told(run.err)[0] == f"error: {tmp_path} holds no cluster, but photo.jpg"
    assert [each.name for each in tmp_path.iterdir()] == ["photo.jpg"]


def test_a_cluster_leaves_the_folder_that_is_named_like_a_node_alone(tmp_path: Path) -> None:
    (tmp_path / "node-3").mkdir()
    (tmp_path / "node-3" / "photo.jpg").write_text("mine")
    run = invoke("up", "--brokers", "3", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert run.code == 1 and "node-3 is no data directory" in told(run.err)[0]
    assert [each.name for each in tmp_path.rglob("*")] == ["node-3", "photo.jpg"]


def test_a_cluster_needs_ports_that_exist(tmp_path: Path) -> None:
    run = invoke("up", "--brokers", "3", "--data", str(tmp_path / "d"), "--listen", "127.0.0.1:65534")
    assert run.code == 1 and "ports end at 65535" in told(run.err)[0]
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("text", [":99999", "127.0.0.1:abc", "9092", "h:-1", ""])
def test_what_is_no_address(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        host_and_port(text)
    assert start.main(["--data", str(tmp_path / "d"), f"--listen={text}"]) == 2
    assert "is not HOST:PORT" in told(capsys.readouterr().err)[0]
    for words in (["--listen", text], ["--listen", "127.0.0.1:0", "--registry", text]):
        assert invoke("up", "--data", str(tmp_path / "d"), *words).code == 2
    assert not (tmp_path / "d").exists()


def test_addresses() -> None:
    assert host_and_port("h:1") == ("h", 1)
    assert host_and_port(":5") == ("127.0.0.1", 5)
    assert host_and_port("SSL://[::1]:0") == ("::1", 0)
    assert start.listener("[::1]:5") == "PLAINTEXT://[::1]:5"


def test_a_port_that_is_taken_formats_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert start.main(["--data", str(tmp_path / "d"), "--listen", f"127.0.0.1:{port}"]) == 1
    first, hint = told(capsys.readouterr().err)
    assert first == f"error: cannot listen on 127.0.0.1:{port}: Address already in use" and "another node" in hint
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("command", ["up", "start"])
def test_a_port_for_metrics_that_is_taken_is_told_with_its_setting(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ["--data", str(tmp_path / "d"), "--listen", "127.0.0.1:0", "--set", f"ottla.metrics.listener={at}"]
        if command == "up":
            run = invoke("up", *words, "--registry", "off", "--console", "off")
            code, text = run.code, run.err
        else:
            code, text = start.main(words), capsys.readouterr().err
    first, hint = told(text)
    assert code == 1 and first == f"error: cannot listen on {at} for metrics: Address already in use"
    assert "ottla.metrics.listener" in hint and "--listen" not in hint
    assert not (tmp_path / "d").exists()


def test_metrics_need_a_port_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports("127.0.0.1", 0, 1)
    words = ["--data", str(tmp_path / "d"), "--listen", f"0.0.0.0:{port}"]
    assert start.main([*words, "--set", f"ottla.metrics.listener=127.0.0.1:{port}"]) == 1
    assert f"ottla.metrics.listener and listener PLAINTEXT both have port {port}" in told(capsys.readouterr().err)[0]
    assert not (tmp_path / "d").exists()


def test_a_file_is_no_data_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f"
    file.write_text("mine")
    assert start.main(["--data", str(file), "--listen", "127.0.0.1:0"]) == 1
    first, hint = told(capsys.readouterr().err)
    assert first == f"error: the data directory {file} is a file" and "is a file and no directory" in hint
    assert file.read_text() == "mine"


def test_a_read_only_file_system_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise StorageError(errno.EROFS, "cannot create bootstrap.checkpoint.tmp: Read-only file system")

    monkeypatch.setattr(process, "run", refuse)
    assert start.main(["--data", str(tmp_path), "--listen", "127.0.0.1:0"]) == 1
    assert "read-only file system" in told(capsys.readouterr().err)[1]


def test_the_reason_is_told_when_no_directory_can_be_used() -> None:
    def broken(path: str) -> SimDisk:
        raise StorageError(errno.EROFS, f"cannot create {path}: Read-only file system")

    with pytest.raises(StorageError, match=r"^/a cannot be used: .*Read-only file system \(nor can any other"):
        open_directories(["/a", "/b"], broken)
