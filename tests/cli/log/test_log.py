"""`ottla log dump` and `ottla log verify` on the directory of a node."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke
from tests.support.processes.node import OttlaNode

from ottla.testing.broker import EmbeddedBroker

Cli = Callable[..., Run]


@pytest.fixture
def data(ottla: Cli, ottla_broker: EmbeddedBroker) -> Path:
    """A stopped node's directory with 40 records in `t-0` and a compressed batch in `t-1`."""
    ottla("topic", "create", "t", "-p", "2", "-c", "segment.bytes=1048576")
    ottla("produce", "t", "-p", "0", stdin="".join(f"value {n}\n" for n in range(40)))
    ottla("produce", "t", "-p", "1", "-z", "zstd", "-k", "key", "-H", "h=1", stdin="compressed\n" * 10)
    ottla_broker.stop()
    return ottla_broker.data_dir


def test_dump(data: Path) -> None:
    overview = invoke("log", "dump", str(data), "--json").json
    assert {"t-0", "t-1", "__cluster_metadata-0"} <= {row["partition"] for row in overview}
    assert any(line.startswith("t-0\t1\t0\t") for line in invoke("log", "dump", str(data)).lines)
    lines = [json.loads(line) for line in invoke("log", "dump", str(data / "t-0"), "--json").lines]
    assert lines[0]["kind"] == "segment" and lines[1]["kind"] == "batch"
    assert sum(line["count"] for line in lines[1:]) == 40
    shown = invoke("log", "dump", str(data / "t-1" / f"{0:020d}.log"), "--records", "--from-offset", "8")
    assert "codec=zstd" in shown.out and "offset=8" in shown.out and "offset=7" not in shown.out
    assert "value=compressed" in shown.out and "headers={'h': '1'}" in shown.out
    metadata = invoke("log", "dump", str(data / "__cluster_metadata-0"), "--records").out
    assert "TopicRecord(name='t'" in metadata and "LeaderChangeMessage(" in metadata
    assert len(invoke("log", "dump", str(data / "t-0"), "-r", "-n", "5").lines) == 5
    assert "kind" not in invoke("log", "dump", str(data / "meta.properties")).out
    for file in sorted((data / "t-0").iterdir()):
        assert invoke("log", "dump", str(file)).code == 0, file


def test_dump_of_nothing(tmp_path: Path) -> None:
    assert "does not exist" in invoke("log", "dump", str(tmp_path / "no")).err
    assert "holds no partitions" in invoke("log", "dump", str(tmp_path)).err
    assert invoke("log", "verify", str(tmp_path)).code == 1


def test_verify_sound(data: Path) -> None:
    found = invoke("log", "verify", str(data), "--json")
    assert found.code == 0 and found.json["ok"] and found.json["records"] >= 50
    assert [each for each in found.json["findings"] if each["severity"] == "error"] == []
    alone = invoke("log", "verify", str(data / "t-0"))
    assert alone.code == 0 and "✓ sound" in alone.out and "40 records" in alone.out


def test_verify_beside_a_running_node(ottla: Cli, ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    ottla("topic", "create", "t")
    ottla("produce", "t", "v")
    data = ottla_broker.data_dir
    for path in (data, data / "t-0"):
        done = invoke("log", "verify", str(path))
        assert done.code == 0 and done.err.startswith(f"warning: a node uses {path} now: ") and "✓ sound" in done.out
    node = OttlaNode(tmp_path / "another").start()
    try:
        assert "warning: a node uses" in invoke("log", "verify", str(node.data_dir)).err
    finally:
        node.stop()
    assert invoke("log", "verify", str(node.data_dir)).err == ""


def test_verify_finds_a_flipped_bit(data: Path) -> None:
    segment = data / "t-1" / f"{0:020d}.log"
    raw = bytearray(segment.read_bytes())
    raw[-1] ^= 1
    segment.write_bytes(raw)
    found = invoke("log", "verify", str(data), "--json")
    assert found.code == 1 and not found.json["ok"]
    assert any(each["kind"] == "damaged-batch" and "t-1" in each["path"] for each in found.json["findings"])
    assert "PROBLEM" in invoke("log", "dump", str(segment)).out
    assert "1 errors" in invoke("log", "verify", str(data / "t-1")).out


def test_a_partition_is_known_by_its_files(tmp_path: Path) -> None:
    photos = tmp_path / "photos-2024"
    photos.mkdir()
    (photos / "a.jpg").write_bytes(b"\xff\xd8\x00")
    (tmp_path / "server.log").write_text("a log of somebody else")
    for command in ("verify", "dump"):
        for path in (tmp_path, photos):
            run = invoke("log", command, str(path))
            assert run.code == 1 and f"{path} holds no partitions" in run.err
        assert invoke("log", command, "").code == 2
    assert "is no file of a log" in invoke("log", "dump", str(photos / "a.jpg")).err
    assert invoke("log", "dump", str(tmp_path), "-n", "-1").code == 2
