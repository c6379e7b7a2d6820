"""Virtual environments that hold exactly what `pip install 'ottla[extra]'` would bring, and nothing else.

The development environment has every package, so a test in it cannot notice that an extra lacks one. Here the packages
of an extra, and all that they require, are found by their metadata and linked from the development environment into a
fresh one: no package index is asked, and it takes a second or two.
"""

from __future__ import annotations

import sys
import tomllib
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
_OTTLA = "ottla"
_PACKAGES = (_OTTLA, "pyspark_ottla")


def make_environment(directory: Path, *extras: str) -> Path:
    """Make a virtual environment with Ottla and the extras in the directory, and return its Python."""
    venv.create(directory, symlinks=True)
    site = directory / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for name in _PACKAGES:
        (site / name).symlink_to(ROOT / "src" / name)
    for name in required(*extras):
        _link(metadata.distribution(name), site)
    return directory / "bin" / "python"


def required(*extras: str) -> set[str]:
    """Return the names of all distributions that Ottla requires with these extras, on this Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {"": project["dependencies"], **project["optional-dependencies"]}
    seen: set[tuple[str, str]] = set()
    left = [(_OTTLA, extra) for extra in ("", *extras)]
    while left:
        name, extra = asked = left.pop()
        if asked in seen:
            continue
        seen.add(asked)
        texts = declared[extra] if name == _OTTLA else metadata.requires(name) or ()
        for each in map(Requirement, texts):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(each.name), wanted) for wanted in ("", *each.extras)]
    return {name for name, _ in seen} - {_OTTLA}


def _link(distribution: metadata.Distribution, site: Path) -> None:
    """Link file by file: distributions may share a folder, as those below `google` do."""
    for file in distribution.files or ():
        if ".." not in file.parts:  # a script or a man page
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(file.locate())).resolve())
