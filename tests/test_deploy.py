"""The files in deploy/: what they say is carried out on loopback, as far as that goes without a container runtime."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S, until

from ottla.model.broker_settings import BROKER_SETTINGS

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
OTTLA = Path(sys.executable).with_name("ottla")


class Started(NamedTuple):
    """What one node is started with: the arguments of `ottla`, as a shell would see them, and its environment."""

    arguments: list[str]
    environment: dict[str, str]


def compose_nodes() -> tuple[str, list[Started]]:
    services = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]
    nodes = [Started(services[f"node{number}"]["command"], {}) for number in (1, 2, 3)]
    return (DEPLOY / "docker" / "server.properties").read_text(), nodes


def kubernetes_objects() -> dict[str, Any]:
    text = (DEPLOY / "kubernetes" / "ottla.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def kubernetes_nodes() -> tuple[str, list[Started]]:
    objects = kubernetes_objects()
    [container] = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["/bin/sh", "-c"]
    [script] = container["args"]
    nodes = []
    for number in range(3):
        environment = {"HOSTNAME": f"ottla-{number}"}
        shown = subprocess.run(
            ["/bin/sh", "-c", f"ottla() {{ printf '%s\\n' \"$@\"; }}; {script.removeprefix('exec ')}"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        nodes.append(Started(shown.stdout.splitlines(), environment))
    return objects["ConfigMap"]["data"]["server.properties"], nodes


@pytest.fixture(params=[compose_nodes, kubernetes_nodes], ids=["compose", "kubernetes"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Three processes on three loopback addresses: where the files say a name, a port or a path, a local one."""
    properties, nodes = request.param()
    kafka, host, controller = free_ports(3)
    names = {
        f"{stem}:": f"127.0.1.{number}:"
        for number in (1, 2, 3)
        for stem in (f"node{number}", f"ottla-{number - 1}.ottla")
    }

    def local(text: str, number: int) -> str:
        for name, address in names.items():
            text = text.replace(name, address)
        text = text.replace("0.0.0.0", f"127.0.1.{number}").replace("/var/lib/ottla", str(tmp_path / str(number)))
        for told, ours in ((":19092", f":{host}"), (":9092", f":{kafka}"), (":9093", f":{controller}")):
            text = text.replace(told, ours)
        return text

    processes = []
    try:
        for number, node in enumerate(nodes, 1):
            file = tmp_path / str(number) / "server.properties"
            file.parent.mkdir()
            file.write_text(local(properties, number))
            arguments = [
                local(each, number).replace("/etc/ottla/server.properties", str(file)) for each in node.arguments
            ]
            with (tmp_path / f"{number}.log").open("w") as log:
                command = [OTTLA, *arguments]
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | node.environment))
        yield ",".join(f"127.0.1.{number}:{kafka}" for number in (1, 2, 3))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(WAIT_S)


def test_the_nodes_form_a_cluster(cluster: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster})
    assert until(lambda: len(admin.list_topics(timeout=5).brokers) == 3)
    admin.create_topics([NewTopic("orders", 1)])["orders"].result(WAIT_S)
    [partition] = admin.list_topics("orders", timeout=WAIT_S).topics["orders"].partitions.values()
    assert len(partition.replicas) == 3  # default.replication.factor
    producer = Producer({"bootstrap.servers": cluster, "acks": "all"})
    offsets: list[int | None] = []
    producer.produce("orders", b"hello", on_delivery=lambda error, message: offsets.append(message.offset()))
    assert producer.flush(WAIT_S) == 0
    assert offsets == [0]


@pytest.mark.parametrize("properties", [compose_nodes()[0], kubernetes_nodes()[0]], ids=["compose", "kubernetes"])
def test_every_setting_is_one(properties: str) -> None:
    names = {line.partition("=")[0] for line in properties.splitlines() if line and not line.startswith("#")}
    assert names and not names - set(BROKER_SETTINGS)


def test_kubernetes_objects_refer_to_each_other() -> None:
    objects = kubernetes_objects()
    stateful, service = objects["StatefulSet"]["spec"], objects["Service"]
    pod = stateful["template"]
    assert stateful["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"] == stateful["selector"]["matchLabels"]
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    [container] = pod["spec"]["containers"]
    volumes = {each["name"] for each in pod["spec"]["volumes"]}
    volumes |= {each["metadata"]["name"] for each in stateful["volumeClaimTemplates"]}
    assert {each["name"] for each in container["volumeMounts"]} == volumes
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {each["name"]: each["port"] for each in service["spec"]["ports"]}


def test_probes_have_more_time_than_kubernetes_gives_by_itself() -> None:
    """A start of `ottla api` takes up to a second on a busy machine, and one second is Kubernetes' default."""
    [container] = kubernetes_objects()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    kinds = ("startupProbe", "readinessProbe", "livenessProbe")
    assert [container[kind]["timeoutSeconds"] for kind in kinds] == [5, 5, 5]


def probes() -> list[list[str]]:
    [container] = kubernetes_objects()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    dockerfile = (DEPLOY / "docker" / "Dockerfile").read_text()
    [check] = [line for line in dockerfile.splitlines() if line.startswith("HEALTHCHECK")]
    in_image: list[str] = yaml.safe_load(check.partition(" CMD ")[2])
    return [container[kind]["exec"]["command"] for kind in ("startupProbe", "readinessProbe")] + [in_image]


@pytest.mark.parametrize("command", probes(), ids=shlex.join)
def test_probes_tell_a_node_that_answers_from_one_that_does_not(command: list[str], ottla_broker: Any) -> None:
    def run(bootstrap: str) -> int:
        words = [bootstrap if word == "127.0.0.1:9092" else word for word in command[1:]]
        return subprocess.run([OTTLA, *words], capture_output=True, check=False).returncode

    assert run(ottla_broker.bootstrap) == 0
    assert run(f"127.0.0.1:{free_ports(1)[0]}") != 0


def test_dockerfile_passes_its_linter() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    found = subprocess.run([linter, DEPLOY / "docker" / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_unit_of_systemd_starts_a_node() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / "ottla.service")
    program, command, file = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command, file) == ("ottla", "start", "/etc/ottla/server.properties")
    assert unit["Service"]["KillSignal"] == "SIGTERM"
    if checker := shutil.which("systemd-analyze"):
        found = subprocess.run(
            [checker, "verify", DEPLOY / "systemd" / "ottla.service"], capture_output=True, text=True, check=False
        )
        wrong = [line for line in found.stderr.splitlines() if "ottla.service" in line and "not executable" not in line]
        assert not wrong
