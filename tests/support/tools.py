"""Where scripts/tools put things, and what to do when they are not there.

Rule: on a developer's machine a missing tool skips the test with the command that installs it; in CI it fails, because
a skipped proof is no proof.
"""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
KAFKA_LIBS = TOOLS / "kafka-4.3.1" / "libs"
CLIENTS_392_LIBS = TOOLS / "kafka-clients-3.9.2" / "libs"
CLASSES = TOOLS / "classes"
CLASSES_392 = TOOLS / "classes-3.9.2"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def missing() -> str | None:
    """Why the Java tools cannot be used, or None."""
    if shutil.which("java") is None:
        return "java is not installed; run scripts/tools"
    if not (TOOLS / ".ready").exists():
        return "the Kafka jars and harnesses are not installed; run scripts/tools"
    return None


def require() -> None:
    """Skips the test without the tools; fails it in CI."""
    reason = missing()
    if reason is None:
        return
    if in_ci():
        pytest.fail(reason)
    pytest.skip(reason)
