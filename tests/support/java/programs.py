"""Run Java programs from tests: a JVM per call (run_tool), or one JVM that answers many lines (JavaServer)."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.lines import LineServer
from tests.support.tools import APPS_LIBS, CLASSES, CLASSES_392, CLASSES_STREAMS, CLIENTS_392_LIBS, KAFKA_LIBS

# A test JVM lives for seconds, so it should start quickly, compile little and use little memory. It shares two cores.
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")
QUICK = (*BRIEF, "-Xmx512m")
LOG_CONFIG = Path(__file__).with_name("log4j2-quiet.yaml")

CLASSPATH_431 = f"{CLASSES}{os.pathsep}{KAFKA_LIBS}/*"
CLASSPATH_STREAMS = f"{CLASSES_STREAMS}{os.pathsep}{APPS_LIBS}/*{os.pathsep}{KAFKA_LIBS}/*"
CLASSPATH_CONNECT = f"{KAFKA_LIBS}/*{os.pathsep}{APPS_LIBS}/connect-file-4.3.1.jar"
CLASSPATH_392 = f"{CLASSES_392}{os.pathsep}{CLIENTS_392_LIBS}/*"


def command(main_class: str, *args: str, classpath: str = CLASSPATH_431, options: Sequence[str] = ()) -> list[str]:
    log = f"-Dlog4j2.configurationFile={LOG_CONFIG}"
    return ["java", *QUICK, log, *options, "-cp", classpath, main_class, *args]


def run_tool(
    main_class: str,
    *args: str,
    stdin: str | None = None,
    classpath: str = CLASSPATH_431,
    options: Sequence[str] = (),
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a Java program in a JVM of its own, which has `options`. Never raises for its exit code, which the test
    checks.
    """
    return subprocess.run(
        command(main_class, *args, classpath=classpath, options=options),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class JavaServer(LineServer):
    """A harness in a JVM (Lines.java)."""

    def __init__(
        self, main_class: str, log_path: Path, *, classpath: str = CLASSPATH_431, options: Sequence[str] = ()
    ) -> None:
        """`options` are those of the JVM."""
        super().__init__(main_class, command(main_class, classpath=classpath, options=options), log_path)
