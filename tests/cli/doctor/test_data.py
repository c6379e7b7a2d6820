"""`ottla doctor --data`: each check is provoked in the directory that a real node left, which was sound before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.cli.doctor.diagnoses import Told
from tests.support.waiting import WAIT_S

from ottla.cluster.store import DOUBT
from ottla.log.files.checkpoint import CLEANER_OFFSETS, write_offsets
from ottla.log.files.names import file_name
from ottla.model.ids import TopicPartition
from ottla.operations.doctor.catalogue import DATA
from ottla.server.ports.os_disk import OsDisk
from ottla.testing.broker import EmbeddedBroker

SMALL_BYTES = 64 << 20  # of a file system that a test fills


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a node that had a topic and stopped in order."""
    path = tmp_path_factory.mktemp("sound") / "data"
    path.mkdir(mode=0o700)
    with EmbeddedBroker(path) as broker:
        env = {"OTTLA_BOOTSTRAP": broker.bootstrap}
        assert invoke("topic", "create", "t", env=env).code == 0
        assert invoke("produce", "t", "-", stdin="".join(f"{each}\n" for each in range(100)), env=env).code == 0
    return path


@pytest.fixture
def data(sound: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(sound, tmp_path / "data"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES},mode=700", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here (needs root)")
    yield path
    subprocess.run(["umount", "-l", str(path)], capture_output=True, check=True)


def told(*paths: Path) -> Told:
    return Told(*(word for path in paths for word in ("--data", str(path))))


def test_nothing_is_wrong_with_a_sound_directory(data: Path) -> None:
    found = Told("--data", str(data), "--skip", "disk-slow", "--skip", "disk-full")  # of this machine
    assert found.findings == [] and not found.not_checked
    assert found.fine == {each.id for each in DATA.all} - {"disk-slow", "disk-full"}


def lose_meta(data: Path) -> str:
    (data / "meta.properties").unlink()
    return "has lost its meta.properties"


def belong_to_nobody(data: Path) -> str:
    (data / "meta.properties").write_text("version=1\nnode.id=1\n")
    return "does not say cluster.id"


def lose_metadata(data: Path) -> str:
    shutil.rmtree(data / "__cluster_metadata-0")
    (data / "bootstrap.checkpoint").unlink()
    return "neither __cluster_metadata-0 nor bootstrap.checkpoint"


def doubt(data: Path) -> str:
    (data / DOUBT).touch()
    return DOUBT


def start_as_other_user(data: Path) -> str:
    if os.getuid():
        pytest.skip("only root gives files away")
    os.chown(data / "t-0" / file_name(0, ".log"), 12345, -1)
    return "t-0/00000000000000000000.log"


def put_photos(data: Path) -> str:
    (data / "photos-2024").mkdir()
    (data / "photos-2024" / "sea.jpg").write_text("mine")
    return "photos-2024"


def set_aside(data: Path) -> str:
    shutil.copytree(data / "t-0", data / f"t-0.{'ab' * 16}-stray")
    return "-stray"


def crash(data: Path) -> str:
    (data / ".kafka_cleanshutdown").unlink()
    return "no .kafka_cleanshutdown"


def damage(data: Path) -> str:
    path = data / "t-0" / file_name(0, ".log")
    written = bytearray(path.read_bytes())
    written[len(written) // 2] ^= 0xFF
    path.write_bytes(written)
    return "t-0: 1 faults, the first: error: damaged-batch"


def interrupt_a_deletion(data: Path) -> str:
    (data / "t-0" / f"{file_name(100, '.log')}.deleted").touch()
    return "t-0/00000000000000000100.log.deleted"


def roll_without_end(data: Path) -> str:
    for offset in range(200, 1300):
        (data / "t-0" / file_name(offset, ".log")).touch()
    return "t-0 has 1101 segments"


def compact_nothing(data: Path) -> str:
    for offset in range(100, 112):
        (data / "t-0" / file_name(offset, ".log")).write_bytes(bytes(1000))
    write_offsets(OsDisk(str(data)), CLEANER_OFFSETS, {TopicPartition("t", 0): 0})
    return "t-0: 12 of 12 closed segments"


def jump_ahead(data: Path) -> str:
    later = time.time() + 30 * 3600
    os.utime(data / "t-0" / file_name(0, ".log"), (later, later))
    return "was written 30.0 hours from now"


CASES: dict[str, tuple[Callable[[Path], str], str]] = {
    "meta-missing": (lose_meta, "problem"),
    "meta-other": (belong_to_nobody, "problem"),
    "metadata-missing": (lose_metadata, "problem"),
    "voter-in-doubt": (doubt, "warning"),
    "owner-foreign": (start_as_other_user, "problem"),
    "entries-foreign": (put_photos, "warning"),
    "partitions-stray": (set_aside, "warning"),
    "shutdown-unclean": (crash, "warning"),
    "log-damaged": (damage, "problem"),
    "leftovers": (interrupt_a_deletion, "warning"),
    "segments-many": (roll_without_end, "warning"),
    "compaction-behind": (compact_nothing, "warning"),
    "clock-jumped": (jump_ahead, "warning"),
}
APART = {"directory-readable", "disk-full", "filesystem-unfit", "disk-slow", "descriptors-few"}


def test_every_check_of_a_directory_has_a_case() -> None:
    assert set(CASES) | APART == {each.id for each in DATA.all}


@pytest.mark.parametrize("check", CASES)
def test_what_is_wrong_is_found(data: Path, check: str) -> None:
    provoke, level = CASES[check]
    what = provoke(data)
    found = told(data)
    assert found.level(check) == level and what in found.what(check)


def test_a_directory_that_others_can_enter(data: Path) -> None:
    data.chmod(0o750)
    assert told(data).level("directory-readable") is None, "a directory above keeps them out"
    modes = {each: each.stat().st_mode for each in data.parents}
    try:
        for each, mode in modes.items():
            if mode & 0o011 != 0o011:
                each.chmod(mode | 0o011)
        found = told(data)
        assert found.level("directory-readable") == "warning" and "mode 750" in found.what("directory-readable")
    finally:
        for each, mode in modes.items():
            if each.stat().st_mode != mode:
                each.chmod(mode)


def test_directories_of_two_nodes(data: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(data, tmp_path / "other"))
    assert told(data, other).checks.isdisjoint({"meta-other", "metadata-missing"})
    meta = (other / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    (other / "meta.properties").write_text(meta)
    found = told(data, other)
    assert found.level("meta-other") == "problem" and "node.id is 1" in found.what("meta-other")
    lose_metadata(other)
    assert told(data, other).level("metadata-missing") is None, "the other directory has it"
    path = tmp_path / "server.properties"
    path.write_text("process.roles=broker,controller\nnode.id=7\nlisteners=PLAINTEXT://127.0.0.1:9092\n")
    assert "belongs to node 1" in Told("--config", str(path), "--data", str(data)).what("meta-other")


def test_a_disk_that_fills_and_is_in_memory(small_disk: Path, data: Path) -> None:
    shutil.copytree(data, small_disk / "data")
    found = told(small_disk / "data")
    assert found.level("filesystem-unfit") == "warning" and "tmpfs" in found.what("filesystem-unfit")
    assert found.level("disk-full") is None
    assert found.level("disk-slow") is None, "what is in memory syncs at once"
    (small_disk / "ballast").write_bytes(bytes(int(SMALL_BYTES * 0.88)))
    assert told(small_disk / "data").level("disk-full") == "warning"
    (small_disk / "more").write_bytes(bytes(int(SMALL_BYTES * 0.08)))
    assert told(small_disk / "data").level("disk-full") == "problem"


def run_in_process(*prefix: str, data: Path) -> str:
    words = [*prefix, sys.executable, "-m", "ottla", "doctor", "--data", str(data)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=4 * WAIT_S, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.stdout


def test_few_descriptors(data: Path) -> None:
    limited = run_in_process("prlimit", "--nofile=1000:1000", data=data)
    assert "at most 1000 descriptors" in limited and "(descriptors-few)" in limited


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace delays the syncs of the process")
def test_a_slow_disk(data: Path) -> None:
    delay = ["strace", "-f", "-o", os.devnull, "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=300000"]
    assert "(disk-slow)" in run_in_process(*delay, data=data)


def test_a_node_that_runs_is_left_alone(data: Path) -> None:
    with EmbeddedBroker(data) as broker:
        found = told(data)
        assert set(found.not_checked) == {"shutdown-unclean", "log-damaged", "leftovers"}
        assert "a node uses the directory" in found.not_checked["log-damaged"]
        assert (
            invoke("consume", "t", "-n", "1", "--from-beginning", env={"OTTLA_BOOTSTRAP": broker.bootstrap}).code == 0
        )


def test_nothing_is_changed(data: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = (each for each in data.rglob("*") if each.is_file())
        return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in files}

    before = state()
    told(data)
    assert state() == before
