"""The tools that scripts/tools installed, and what to do if they are missing.

Rule: on a developer's machine a test without its tool is skipped, with the command that installs the tool; in CI it
fails, because a skipped test proves nothing.
"""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
KAFKA_LIBS = TOOLS / "kafka-4.3.1" / "libs"
CLIENTS_392_LIBS = TOOLS / "kafka-clients-3.9.2" / "libs"
APPS_LIBS = TOOLS / "kafka-apps-4.3.1" / "libs"
SPARK_LIBS = TOOLS / "spark-4.2.0" / "libs"
PROTOBUF_LIBS = TOOLS / "protobuf-java-4.36.2" / "libs"
CLASSES = TOOLS / "classes"
CLASSES_392 = TOOLS / "classes-3.9.2"
CLASSES_STREAMS = TOOLS / "classes-streams"
GO_HARNESS = TOOLS / "go" / "harness"
BURROW = TOOLS / "go" / "burrow-1.9.6"
VERSITYGW = TOOLS / "go" / "versitygw-1.8.0"
COLLECTOR = TOOLS / "go" / "otelcol" / "otelcol"
NODE_MODULES = TOOLS / "node" / "node_modules"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def missing() -> str | None:
    """Why the Java tools cannot be used; None if they can."""
    if shutil.which("java") is None:
        return "java is not installed; run scripts/tools"
    if not (TOOLS / ".ready").exists():
        return "the Kafka jars and harnesses are not installed; run scripts/tools"
    return None


def missing_go() -> str | None:
    return _missing("go", GO_HARNESS)


def missing_burrow() -> str | None:
    return _missing("burrow", BURROW)


def missing_collector() -> str | None:
    return _missing("collector", COLLECTOR)


def missing_versitygw() -> str | None:
    return _missing("versitygw", VERSITYGW)


def missing_node() -> str | None:
    return _missing("node", NODE_MODULES)


def missing_postgres() -> str | None:
    return None if _found("initdb") else "the PostgreSQL server is not installed; run scripts/tools"


def missing_kerberos() -> str | None:
    """Why there can be no key distribution centre."""
    note = TOOLS / "kerberos.missing"
    if note.exists():
        return note.read_text().strip()
    found = all(map(_kerberos, ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")))
    return (
        None
        if found
        else "a Kerberos server (krb5-kdc, krb5-admin-server, krb5-user) is not installed; run scripts/tools"
    )


def missing_prometheus() -> str | None:
    """Debian's package `prometheus` has both programs."""
    found = shutil.which("prometheus") and shutil.which("promtool")
    return None if found else "prometheus and promtool are not installed; run scripts/tools"


def missing_browser() -> str | None:
    """Why the console cannot be tried in a browser."""
    note = TOOLS / "chromium.missing"
    if note.exists():
        return note.read_text().strip()
    return None if shutil.which("chromium") else "chromium is not installed; run scripts/tools"


def missing_kcat() -> str | None:
    """Why librdkafka cannot be tried with GSSAPI; the module is one of Cyrus SASL, which librdkafka loads."""
    found = shutil.which("kcat") and any(Path("/usr/lib").glob("**/sasl2/libgssapiv2.so*"))
    return None if found else "kcat with Cyrus SASL's GSSAPI is not installed; run scripts/tools"


def kerberos_program(name: str) -> str:
    """The path of a program of MIT Kerberos: the server's are in a directory that is not on everybody's PATH."""
    found = _kerberos(name)
    assert found is not None, name
    return found


def _kerberos(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")))


def postgres_program(name: str) -> str:
    """The path of a PostgreSQL program: Debian has the server's programs in a directory per version, not on PATH."""
    found = _found(name)
    assert found is not None, name
    return found


def _found(name: str) -> str | None:
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(kept[-1]) if kept else shutil.which(name)


def _missing(name: str, made: Path) -> str | None:
    """Why a tool is missing; scripts/tools leaves a note if it could not make a tool."""
    note = TOOLS / f"{name}.missing"
    if note.exists():
        return note.read_text().strip()
    return None if made.exists() else f"{made.name} is not there; run scripts/tools"


def require(reason: str | None) -> None:
    """Skip the test if there is a reason; in CI fail it."""
    if reason is None:
        return
    if in_ci():
        pytest.fail(reason)
    pytest.skip(reason)
