"""`ottla doctor --config`: each check is provoked by a file, and a good file provokes none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import invoke
from tests.cli.doctor.diagnoses import Told

from ottla.operations.doctor.catalogue import FILE, SETTINGS
from ottla.testing.certificates import issue, make_authority

ALONE = "process.roles=broker,controller\nnode.id=1\nlog.dirs=/var/lib/ottla-nowhere\n"
GOOD = ALONE + "listeners=PLAINTEXT://127.0.0.1:9092\n"
ELSEWHERE = ALONE + "listeners=PLAINTEXT://10.0.0.1:9092\n"
OF_THREE = ALONE + (
    "listeners=PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
    "controller.quorum.voters=1@10.0.0.1:9093,2@10.0.0.2:9093,3@10.0.0.3:9093\ndefault.replication.factor=3\n"
)
LOCAL_OF_THREE = OF_THREE.replace("10.0.0.1:9092", "0.0.0.0:9092") + "advertised.listeners=PLAINTEXT://localhost:9092\n"
SASL = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:admin\n" + (
    "sasl.enabled.mechanisms=SCRAM-SHA-512\n"
)
TLS = ALONE + SASL + "listeners=SASL_SSL://127.0.0.1:9092\nssl.keystore.type=PEM\nssl.keystore.location={key}\n"


class Case(NamedTuple):
    """A file in which a check finds something, of this level, with this in it; and one in which it finds nothing."""

    bad: str
    level: str
    what: str
    good: str = GOOD
    days: int = 200  # of the certificate
    mode: int = 0o600  # of the key


CASES = {
    "listener-open": Case(ELSEWHERE, "problem", "listener PLAINTEXT (PLAINTEXT) at 10.0.0.1:9092 does not"),
    "access-open": Case(ELSEWHERE, "problem", "no authorizer"),
    "certificate-expiring": Case(TLS, "problem", "has expired", days=-1),
    "auto-create": Case(ELSEWHERE, "warning", "auto.create", ELSEWHERE + "auto.create.topics.enable=false\n"),
    "unclean-default": Case(GOOD + "unclean.leader.election.enable=true\n", "warning", "for all topics"),
    "factor-one-default": Case(
        OF_THREE.replace("factor=3", "factor=1"), "warning", "default.replication.factor is 1", OF_THREE
    ),
    "min-isr-unreachable": Case(GOOD + "min.insync.replicas=2\n", "problem", "min.insync.replicas is 2"),
    "compaction-off": Case(GOOD + "log.cleaner.enable=false\n", "problem", "log.cleaner.enable"),
    "offsets-expire-first": Case(GOOD + "offsets.retention.minutes=60\n", "warning", "60 minutes without members"),
    "setting-unknown": Case(GOOD + "log.retention.hour=3\n", "warning", "there is no setting log.retention.hour"),
    "setting-idle": Case(GOOD + "num.network.threads=17\n", "warning", "num.network.threads=17"),
    "setting-contradictory": Case(
        GOOD + "queued.max.request.bytes=5\n", "problem", "queued.max.request.bytes must be larger"
    ),
    "advertised-local": Case(LOCAL_OF_THREE, "problem", "PLAINTEXT is advertised as localhost:9092", OF_THREE),
    "port-floating": Case(ALONE + "listeners=PLAINTEXT://127.0.0.1:0\n", "warning", "PLAINTEXT has port 0"),
    "data-in-tmp": Case(GOOD.replace("/var/lib/ottla-nowhere", "/tmp/x"), "warning", "log.dirs has /tmp/x"),
    "data-same-disk": Case(
        GOOD.replace("/var/lib/ottla-nowhere", "{one},{two}"),
        "warning",
        "lie on one file system",
        GOOD.replace("/var/lib/ottla-nowhere", "{one}"),
    ),
    "secrets-readable": Case(TLS, "problem", "holds a private key", TLS, mode=0o644),
    "retention-beyond-disk": Case(
        GOOD.replace("/var/lib/ottla-nowhere", "{one}") + f"log.retention.bytes={1 << 60}\n",
        "warning",
        "bytes of its disks",
        GOOD.replace("/var/lib/ottla-nowhere", "{one}") + "log.retention.bytes=4096\n",
    ),
    "acks-in-memory": Case(ELSEWHERE, "warning", "fsync", ELSEWHERE + "ottla.fsync.before.ack=true\n"),
    "voters-even-file": Case(OF_THREE.replace(",3@10.0.0.3:9093", ""), "warning", "names 2 nodes", OF_THREE),
}
Examine = Callable[..., Told]


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    def run(text: str, days: int = 200, mode: int = 0o600) -> Told:
        now = datetime.now(UTC)
        authority = make_authority("ca", now - timedelta(days=400))
        key = tmp_path / "node.pem"
        made = issue(authority, "node", ["localhost"], now - timedelta(days=300), valid_for=timedelta(days=300 + days))
        key.write_text(made.text)
        key.chmod(mode)
        for name in ("one", "two"):
            (tmp_path / name).mkdir(exist_ok=True)
        path = tmp_path / "server.properties"
        path.write_text(text.format(key=key, one=tmp_path / "one", two=tmp_path / "two"))
        return Told("--config", str(path))

    return run


def test_every_check_of_settings_has_a_case() -> None:
    assert set(CASES) == {each.id for area in (FILE, SETTINGS) for each in area.all}


@pytest.mark.parametrize("check", CASES)
def test_a_bad_file_and_a_good_one(examine: Examine, check: str) -> None:
    case = CASES[check]
    told = examine(case.bad, case.days, case.mode)
    assert told.level(check) == case.level
    assert case.what in told.what(check)
    assert examine(case.good).level(check) is None


@pytest.mark.parametrize("text", [GOOD, TLS], ids=["alone", "with certificates"])
def test_nothing_is_wrong_with_a_good_file(examine: Examine, text: str) -> None:
    told = examine(text)
    assert told.findings == [] and not told.not_checked and len(told.fine) == len(CASES)


def test_a_certificate_that_cannot_be_read_is_told(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    told = examine(TLS.replace("{key}", str(tmp_path / "empty.pem")))
    assert told.level("certificate-expiring") == "warning" and "no certificate" in told.what("certificate-expiring")


def test_a_value_that_is_none_is_one_finding_and_the_rest_is_not_checked(examine: Examine) -> None:
    told = examine(GOOD + "num.partitions=many\n")
    assert told.checks == {"setting-contradictory"} and "num.partitions" in told.what("setting-contradictory")
    assert "auto-create" in told.not_checked and "num.partitions" in told.not_checked["auto-create"]


def test_a_known_finding_can_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(GOOD + "unclean.leader.election.enable=true\n")
    assert Told("--config", str(path)).checks == {"unclean-default"}
    told = Told("--config", str(path), "--skip", "unclean-default")
    assert told.findings == [] and "unclean-default" not in told.fine


def test_what_people_see(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(GOOD + "log.cleaner.enable=false\nlog.retention.hour=1\n")
    run = invoke("doctor", "--config", str(path))
    assert run.code == 1 and "1 problem, 1 warning; 18 other checks fine" in run.err
    assert [line.split()[0] for line in run.lines] == ["problem", "why:", "do:", "warning", "why:", "do:"]
    assert "did you mean log.retention.hours" in run.out
    path.write_text(GOOD)
    run = invoke("doctor", "--config", str(path), "--verbose")
    assert run.code == 0 and "20 checks, all fine" in run.err
    assert "fine     server.properties: setting-unknown" in run.lines
