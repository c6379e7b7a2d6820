"""Pages for readers: links lead somewhere, and the indices name every page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:")  # a URL


def pages() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets in the browser."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if _ELSEWHERE.match(link):
            continue
        path, _, wanted = link.partition("#")
        target = page.parent / path if path else page
        is_anchor_missing = wanted and target.suffix == ".md" and target.is_file() and wanted not in anchors(target)
        if not target.exists() or is_anchor_missing:
            broken.append(link)
    return broken


def test_links_lead_somewhere() -> None:
    found = pages()
    assert len(found) > 50
    assert not [(str(page.relative_to(ROOT)), link) for page in found for link in broken_links(page)]


@pytest.mark.parametrize("folder", ["docs", "docs/adr"])
def test_the_index_names_every_page(folder: str) -> None:
    named = set(_LINK.findall((ROOT / folder / "README.md").read_text()))
    assert not [
        page.name for page in pages() if page.parent == ROOT / folder and page.name not in {*named, "README.md"}
    ]


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Two words\n[a](#two-words) [b](#three) [c](page.md) [d](gone.md) `[e](gone.md)` [f](page.md#no)")
    assert broken_links(page) == ["#three", "gone.md", "page.md#no"]
