"""A program that answers each JSON line with a JSON line: the protocol of the Java, Go and Node harnesses."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class HarnessError(Exception):
    """The harness raised an exception; `name` is its simple name."""

    def __init__(self, name: str, message: str, trace: str) -> None:
        super().__init__(f"{name}: {message}\n{trace}")
        self.name = name
        self.message = message


class LineServer:
    """The process of a harness. It ends when its standard input ends; its standard error goes to `log_path`."""

    def __init__(
        self, name: str, words: Sequence[str], log_path: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._log_path = log_path
        self._log = log_path.open("ab")
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **(environment or {})},
        )

    def ask(self, request: dict[str, Any]) -> Any:
        """The answer to one request. Raises HarnessError if the harness raised an exception."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise AssertionError(f"{self._name} ended:\n{self._log_path.read_text()[-4000:]}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise HarnessError(answer["error"], answer["message"], answer["trace"])
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()  # end of input ends the harness
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
