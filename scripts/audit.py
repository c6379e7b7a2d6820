"""`python -m scripts.audit`: fail if a pinned or installed package has a version with a known vulnerability.

It needs no network: it compares with `scripts/advisories.toml`, a list that people keep, and fails as well when nobody
has looked for new advisories for 90 days. `--online` asks pip-audit's database too, with the pip-audit of another
environment (`make audit`); where the database answers, the age of the list does not count; where it does not, that is
said, and the list decides alone.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent
OLD_DAYS = 90


class Advisories(NamedTuple):
    """What is known: by package the ids of advisories, with ranges of versions."""

    as_of: date
    vulnerable: Mapping[str, list[tuple[str, SpecifierSet]]]

    @classmethod
    def read(cls, path: Path) -> Advisories:
        found = tomllib.loads(path.read_text())
        ranges = {
            normal(name): [(advisory, SpecifierSet(versions, prereleases=True)) for advisory, versions in entries]
            for name, entries in found["vulnerable"].items()
        }
        return cls(found["as_of"], ranges)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(text: str) -> Iterator[tuple[str, str]]:
    """The packages of a constraints file, with their versions."""
    for line in text.splitlines():
        name, equals, version = line.partition("#")[0].partition(";")[0].strip().partition("==")
        if equals:
            yield name.strip(), version.strip()


def hits(known: Advisories, packages: Iterable[tuple[str, str]]) -> list[str]:
    """What is vulnerable among these packages, one line each."""
    return [
        f"{name} {version} has {advisory} (versions {versions})"
        for name, version in packages
        for advisory, versions in known.vulnerable.get(normal(name), ())
        if version in versions
    ]


def asked(program: str, constraints: Path) -> list[str] | None:
    """What pip-audit's database says; None if it does not answer."""
    words = [program, "--requirement", str(constraints), "--no-deps", "--disable-pip", "--format", "json"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)["dependencies"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    known = [each for each in found if "vulns" in each]  # the others were not found in the database
    if not known:
        return None
    for name in sorted(each["name"] for each in found if "vulns" not in each):
        print(f"audit: the database does not know {name}")
    return [f"{each['name']} {each['version']} has {vuln['id']}" for each in known for vuln in each["vulns"]]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit", description=__doc__)
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--advisories", type=Path, default=ROOT / "scripts" / "advisories.toml")
    parser.add_argument("--online", metavar="PIP_AUDIT", help="also ask the database, with this pip-audit")
    given = parser.parse_args(words)
    known = Advisories.read(given.advisories)
    packages = list(pinned(given.constraints.read_text()))
    installed = [(each.metadata["Name"], each.version) for each in distributions()]
    found = hits(known, dict.fromkeys([*packages, *installed]))
    age_days = (datetime.now(UTC).date() - known.as_of).days
    is_old = age_days > OLD_DAYS
    if given.online:
        answer = asked(given.online, given.constraints)
        if answer is None:
            print("audit: the database of pip-audit does not answer; only the list counts")
        found += answer or []
        is_old &= answer is None
    for line in found:
        print(f"audit: {line}", file=sys.stderr)
    if is_old:
        line = f"audit: the list is older than {OLD_DAYS} days: look for newer advisories, and set as_of in"
        print(f"{line} {given.advisories.name} (CONTRIBUTING.md)", file=sys.stderr)
    print(f"audit: {len(packages)} pinned packages; the list of {known.as_of} is {age_days} days old")
    return 1 if found or is_old else 0


if __name__ == "__main__":
    raise SystemExit(main())
