"""Schema registries as processes, and calls of the REST API without a client library."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S


class Answer(NamedTuple):
    """Status and content of an HTTP response."""

    status: int
    content: Any

    @property
    def code(self) -> int:
        """Confluent's error code; 0 if the request succeeded."""
        return int(self.content["error_code"]) if self.status >= 300 else 0


def ask(url: str, method: str, path: str, body: Any = None, timeout_s: float = 60) -> Answer:
    """Send one request on a connection of its own."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        return Answer(answer.status, json.loads(text) if text else None)
    finally:
        connection.close()


def record(name: str, *fields: str) -> str:
    """An Avro schema of a record with optional text fields, so that any two of one name are compatible."""
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": each, "type": ["null", "string"], "default": None} for each in fields or ("f",)],
        }
    )


class RegistryProcess:
    """A process `ottla registry` on a port that stays the same over restarts."""

    def __init__(self, directory: Path, bootstrap: str, *options: str) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = directory / f"registry-{self.port}.err"
        self._words = [sys.executable, "-m", "ottla", "registry", "--listen", f"127.0.0.1:{self.port}"]
        self._words += ["--bootstrap", bootstrap, *options]
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self) -> "RegistryProcess":
        with self._log.open("ab") as err:
            self._process = subprocess.Popen(self._words, stdout=subprocess.PIPE, stderr=err, text=True)
        return self

    def ready(self) -> "RegistryProcess":
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == f"ready {self.url}\n", f"{line!r}\n{self.errors()}"
        return self

    def start(self) -> "RegistryProcess":
        return self.launch().ready()

    def kill(self) -> None:
        """Kill the registry with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            code = self._end()
            assert code == 0, f"the registry ended with {code}:\n{self.errors()}"

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def errors(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]

    def _end(self) -> int:
        assert self._process is not None and self._process.stdout is not None
        try:
            code = self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process.stdout.close()
        self._process = None
        return code


def until(condition: Any, timeout_s: float = WAIT_S, what: str = "it") -> Any:
    """Check repeatedly until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.05)
