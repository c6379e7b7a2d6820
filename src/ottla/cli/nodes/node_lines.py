"""What the nodes of `ottla up` say, line by line on standard error, with the name of the node: for people, or as JSON.

A node with `--log-format json` writes objects; each gets the name of its node as `node`. What it says besides (an error
before its log is set up, say), and what is told of it here, becomes such an object, too.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime

from ottla.cli.nodes.processes import NodeEvent
from ottla.cli.nodes.start import LogFormat


class NodeLines:
    def __init__(self, log_format: LogFormat) -> None:
        self._is_json = log_format == "json"

    def say(self, event: NodeEvent) -> None:
        if self._is_json:
            print(json.dumps(_entry(event), ensure_ascii=False), file=sys.stderr, flush=True)
            return
        from rich.text import Text

        from ottla.cli.terminal.output import err

        err().print(Text.assemble((f"{event.name} │ ", "cyan"), event.text))


def _entry(event: NodeEvent) -> dict[str, object]:
    if event.text.startswith("{"):
        try:
            told: dict[str, object] = json.loads(event.text)
            return {"node": event.name} | told
        except ValueError:
            pass
    now = datetime.now().astimezone().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return {"node": event.name, "time": now, "level": "info", "logger": "ottla.up", "message": event.text}
