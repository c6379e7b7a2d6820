"""Java programs run from tests: one call each (run_tool), or one JVM that answers many lines (JavaServer)."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.tools import CLASSES, CLASSES_392, CLIENTS_392_LIBS, KAFKA_LIBS

# A test JVM lives for seconds: start quickly, compile cheaply, stay small. Two cores are shared with everything else.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData", "-Xmx512m")
LOG_CONFIG = Path(__file__).with_name("log4j2-quiet.yaml")

CLASSPATH_431 = f"{CLASSES}{os.pathsep}{KAFKA_LIBS}/*"
CLASSPATH_392 = f"{CLASSES_392}{os.pathsep}{CLIENTS_392_LIBS}/*"


class JavaError(Exception):
    """The Java side threw; `name` is the simple name of its exception."""

    def __init__(self, name: str, message: str, trace: str) -> None:
        super().__init__(f"{name}: {message}\n{trace}")
        self.name = name
        self.message = message


def command(main_class: str, *args: str, classpath: str = CLASSPATH_431, options: Sequence[str] = ()) -> list[str]:
    log = f"-Dlog4j2.configurationFile={LOG_CONFIG}"
    return ["java", *QUICK, log, *options, "-cp", classpath, main_class, *args]


def run_tool(
    main_class: str, *args: str, stdin: str | None = None, classpath: str = CLASSPATH_431, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """One call of a Java program in a JVM of its own. Never raises for its exit code: that is the test's business."""
    return subprocess.run(
        command(main_class, *args, classpath=classpath),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class JavaServer:
    """A harness that answers a JSON line with a JSON line (Lines.java). Its standard error goes to `log_path`."""

    def __init__(self, main_class: str, log_path: Path, *, classpath: str = CLASSPATH_431) -> None:
        self._log = log_path.open("ab")
        self._process = subprocess.Popen(
            command(main_class, classpath=classpath),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._name = main_class
        self._log_path = log_path

    def ask(self, request: dict[str, Any]) -> Any:
        """The answer to one request; JavaError if the Java side threw."""
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
            raise JavaError(answer["error"], answer["message"], answer["trace"])
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
