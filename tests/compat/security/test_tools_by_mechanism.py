"""Kafka's command-line tools with `--command-config`, as alice, who proves who she is in each way but a password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.compat.security.every_mechanism import CERTIFICATE, TOKEN, EveryMechanism
from tests.support import tools
from tests.support.java.programs import run_tool
from tests.support.processes.kdc import Kdc

from ottla.client.blocking.blocking import Blocking

TOOLS = "org.apache.kafka.tools"


class ByWay(NamedTuple):
    """A tool with words, what it says, and what alice is told about a name that is not hers."""

    main: str
    words: str
    says: str
    refused: str


WAYS = {
    CERTIFICATE: ByWay("TopicCommand", "--create --topic {name}", "Created topic {name}", "Authorization failed"),
    "OAUTHBEARER": ByWay(
        "DeleteRecordsCommand", "--offset-json-file {file}", "low_watermark: 1", "TopicAuthorizationException"
    ),
    "GSSAPI": ByWay(
        "consumer.group.ConsumerGroupCommand",
        "--reset-offsets --to-earliest --execute --group {name} --topic {name}",
        "{name}",
        "AuthorizationException",
    ),
    TOKEN: ByWay("GetOffsetShell", "--topic {name}", "{name}:0:", "Could not match any topic-partitions"),
}


@pytest.fixture(scope="module")
def node(java_tools: None, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EveryMechanism]:
    tools.require(tools.missing_node())
    with EveryMechanism(tmp_path_factory.mktemp("every"), kdc) as made:
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_in_each_way(way: str, node: EveryMechanism, kdc: Kdc, tmp_path: Path) -> None:
    tool = WAYS[way]
    config = node.security(way).command_config(tmp_path / "client.properties")
    options = [kdc.java_option, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={node.provider.token_url}"]
    file = tmp_path / "first.json"
    number = [*WAYS].index(way)

    def run(name: str) -> tuple[int, str]:
        partition = f'{{"topic": "{name}", "partition": 0, "offset": 1}}'
        file.write_text(f'{{"partitions": [{partition}], "version": 1}}')
        words = tool.words.format(name=name, file=file).split()
        place = ("--bootstrap-server", node.at(way), "--command-config", str(config))
        done = run_tool(f"{TOOLS}.{tool.main}", *place, *words, options=options)
        return done.returncode, done.stdout + done.stderr

    hers, hidden = f"alice-{number}", f"hidden-{number}"
    with Blocking(node.at("PLAIN"), security=node.security("PLAIN", "admin").java()) as admin:
        for topic in (hers, hidden)[way == CERTIFICATE :]:
            admin.send(topic, b"x")
    code, said = run(hers)
    assert code == 0 and tool.says.format(name=hers) in said, said
    _, said = run(hidden)
    assert tool.refused in said and "low_watermark" not in said, said
