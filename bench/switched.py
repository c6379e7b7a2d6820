"""A subject of which a part can be taken away and put back while it serves (`switched_node.py`)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes.node import AS_INSTALLED

from bench.subject import Ottla

WITHOUT, WITH = "without", "with"
WAYS = (WITHOUT, WITH)


class Switched(Ottla):
    def __init__(self, part: str, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(directory, settings)
        self._part = part

    def launch(self) -> None:
        with (self._directory / "ottla.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("bench.switched_node", self._part),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | AS_INSTALLED,
            )

    def go(self, way: str) -> None:
        """Serve with the part, or without it, from the next request on."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{way}\n".encode())
        process.stdin.flush()
        for line in process.stdout:  # the node may have said something before
            words = line.split()
            if words[:1] == [way.encode()]:
                assert int(words[1]), "no Produce has come yet"
                return
        raise AssertionError("the node has ended")
