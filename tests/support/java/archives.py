"""Archives of the classes of Spark and Kafka (class data sharing of the JVM); `archiving` makes them.

A JVM that lives for seconds spends most of its time on finding, verifying and linking classes: a Spark session with a
small stream needs 19 s of processor time without an archive and 8 s with one, a broker 3.2 s and 2.5 s.

Rules:
- An archive is for one Java and one class path, whose hash is in its name. A JVM that it does not fit runs without it.
- Without an archive everything works the same, only slower.
- The class path of Spark's JVMs begins with Spark's conf directory, which has to be empty for an archive. So settings
  that would be in spark-defaults.conf are given as options.
"""

import hashlib
import shutil
from functools import cache
from pathlib import Path

from tests.support.java.programs import BRIEF
from tests.support.tools import KAFKA_LIBS, TOOLS

DIRECTORY = TOOLS / "archives"
CONF = DIRECTORY / "conf"
# Spark's home without pyspark.zip: with that file, every Python worker would compile some hundred modules (0.6 s each
# time), and Spark gives up workers that are a few seconds late. Without it, they import the installed pyspark, which is
# the same.
HOME = DIRECTORY / "spark"
# Otherwise the JVM would report an archive that does not fit on standard output, where some programs print their
# results.
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
    """A directory formatted by Kafka's tool, for any node with fixed voters; only the ids differ between nodes."""
    return kafka_archive().with_suffix(".formatted")


def options(archive: Path) -> tuple[str, ...]:
    """The JVM options that use the archive; empty if it does not exist."""
    return (f"-XX:SharedArchiveFile={archive}", SILENT) if archive.exists() else ()


def spark_environment(*more: str) -> dict[str, str]:
    """The environment of every process that starts Spark: options for short-lived JVMs, and these options or those of
    the archive.
    """
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
