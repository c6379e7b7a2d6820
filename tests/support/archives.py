"""Classes of Spark and Kafka in a form that a JVM can use at once (class data sharing); `archiving` makes the archives.

Such a JVM, which lives for seconds, spends most of its time on finding, checking and linking classes: a session of
Spark's and a small stream need 19 s of processor time without an archive and 8 s with one, a broker 3.2 s and 2.5 s.

Rules:
- An archive is of one Java and one class path, which its name stands for. A JVM that it does not fit goes on without.
- Without an archive everything is the same, only slower.
- The class path of Spark's JVMs begins with its conf directory, which has to be empty for an archive. So what would be
  in spark-defaults.conf is given as options.
"""

import hashlib
import shutil
from functools import cache
from pathlib import Path

from tests.support.java import BRIEF
from tests.support.tools import KAFKA_LIBS, TOOLS

DIRECTORY = TOOLS / "archives"
CONF = DIRECTORY / "conf"
# Spark's home without pyspark.zip: from that, every Python worker would compile some hundred modules (0.6 s each time),
# and workers that are a few seconds late are given up. Without, they import the installed pyspark, which is the same.
HOME = DIRECTORY / "spark"
# The JVM would say on standard output, where some programs say their results, that an archive does not fit.
SILENT = "-Xlog:disable"


@cache
def spark_archive() -> Path:
    import pyspark

    for directory in (CONF, HOME):
        directory.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars"):
        target = Path(pyspark.__file__).with_name(name)
        if not (HOME / name).exists() or (HOME / name).resolve() != target.resolve():
            (HOME / name).unlink(missing_ok=True)
            (HOME / name).symlink_to(target)
    return _place("spark", HOME / "jars")


@cache
def kafka_archive() -> Path:
    return _place("kafka", KAFKA_LIBS)


def formatted() -> Path:
    """A directory as Kafka's tool formatted it, for any node whose voters are fixed: only ids differ in theirs."""
    return kafka_archive().with_suffix(".formatted")


def options(archive: Path) -> tuple[str, ...]:
    """Those of a JVM that uses it, if it is there."""
    return (f"-XX:SharedArchiveFile={archive}", SILENT) if archive.exists() else ()


def spark_environment(*more: str) -> dict[str, str]:
    """For every process that starts a Spark: brief JVMs, with these options or those of the archive."""
    brief = " ".join((*BRIEF, *(more or options(spark_archive()))))
    return {
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(CONF),
        "SPARK_LAUNCHER_OPTS": " ".join(BRIEF),
        "SPARK_SUBMIT_OPTS": brief,
        "SPARK_DAEMON_JAVA_OPTS": brief,
    }


def _place(name: str, jars: Path) -> Path:
    java = Path(shutil.which("java") or "java").resolve()
    files = [java, *sorted(jars.glob("*.jar"))]
    facts = [f"{each} {each.stat().st_mtime_ns}" for each in files if each.exists()]
    return DIRECTORY / f"{name}-{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:16]}.jsa"
