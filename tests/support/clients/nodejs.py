"""kafkajs, through tests/node/harness.js and the modules that scripts/tools fetched."""

import json
from pathlib import Path

from tests.support.lines import LineServer
from tests.support.tools import NODE_MODULES, ROOT

FOLDER = ROOT / "tests" / "node"
VERSION = str(json.loads((FOLDER / "package.json").read_text())["dependencies"]["kafkajs"])


def harness(log_path: Path) -> LineServer:
    # kafkajs warns on standard error about its new partitioner; no test depends on the old one.
    environment = {"NODE_PATH": str(NODE_MODULES), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    return LineServer("the Node harness", ["node", str(FOLDER / "harness.js")], log_path, environment=environment)
