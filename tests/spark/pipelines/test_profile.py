"""`ottla pipeline` with a profile: as a user of a secured cluster and its registry, without showing a secret."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.profiles import profile_of, write_profiles
from tests.support.spark.sessions import environment
from tests.support.waiting import COMMAND_S

from ottla.client.blocking.blocking import Blocking
from ottla.testing.secure import SecureBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHOP = """
from ottla.spark import pipeline, to, topic

@pipeline.query
def copies():
    orders = topic("alice-orders", value="avro").select("value.id").where("id > 0")
    return to(orders, "alice-copies", format="avro")
"""
LOCAL = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.driver.memory=1g")
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})


def test_a_pipeline_runs_as_the_user_of_its_profile(
    spark_tools: None, ottla_secure_broker: SecureBroker, tmp_path: Path
) -> None:
    broker = ottla_secure_broker
    secrets = [broker.add_user("alice", "of alice's"), broker.security["sasl.password"], "a guess"]
    broker.allow("alice", "Describe", "Read", topic="alice-orders")
    broker.allow("alice", "Describe", "DescribeConfigs", "Write", topic="alice", prefixed=True)
    # What docs/pipelines.md says of the rights of a pipeline's user.
    own = ("Create", "Describe", "DescribeConfigs", "Read", "Write")
    broker.allow("alice", *own, topic="_ottla_pipelines")
    broker.allow("alice", "Read", group="spark-shop", prefixed=True)
    broker.allow("alice", "Describe", "Write", transactional_id="ottla-spark/", prefixed=True)
    with Blocking(broker.bootstrap, security=broker.security) as client:
        for topic in ("alice-orders", "alice-copies"):
            client.admin.topics.create(topic, 1)
    profile = profile_of(broker, "alice")
    wrong = profile | {"sasl.password": "a guess"}
    env = write_profiles(tmp_path, {"alice": profile, "wrong": wrong, "admin": profile_of(broker, "admin")})
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    shown = ""

    def run(*words: str, profile: str = "alice", stdin: str = "", code: int = 0) -> str:
        nonlocal shown
        done = subprocess.run(
            [sys.executable, "-m", "ottla", *words, "--profile", profile],
            env=environment() | env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        shown += done.stdout + done.stderr
        return done.stdout + done.stderr

    run("schema", "register", "alice-orders-value", "-", stdin=ORDER)
    run("produce", "alice-orders", "--value", "avro", stdin='{"id": 0}\n{"id": 1}\n{"id": 2}\n')
    assert "nothing wrong" in run("pipeline", "check", str(file), *LOCAL)
    early = run("pipeline", "run", str(file), "--once", *LOCAL, code=1)
    assert "copies: TOPIC_AUTHORIZATION_FAILED" in early and "Traceback" not in early
    broker.allow("alice", *own, topic="_ottla_spark_sinks")
    run("pipeline", "run", str(file), "--once", "--json", *LOCAL)
    words = ("consume", "alice-copies", "--value", "avro", "--from-beginning", "-n", "2", "-t", "{value} ")
    assert run(*words, profile="admin").split() == ['{"id":1}', '{"id":2}']
    status = json.loads(run("pipeline", "status", "shop", "--json"))
    assert (status["state"], [each["total_rows"] for each in status["queries"]]) == ("stopped", [3])
    refused = run("pipeline", "run", str(file), "--once", *LOCAL, profile="wrong", code=1)
    assert "refused SCRAM-SHA-512 user alice" in refused
    written = [path for path in (tmp_path / ".ottla").rglob("*") if path.is_file()]
    assert written, "there are no checkpoints"
    shown += "".join(path.read_bytes().decode("latin-1") for path in written)
    assert not [each for each in secrets if each in shown]
