"""The public API: `from ottla import …`, lazily imported, and all that the documentation uses."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.topic_settings import TOPIC_SETTINGS

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "ottla"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
PUBLIC = {"ottla", "ottla.spark", "ottla.sql", "ottla.testing"}


@pytest.mark.parametrize("name", ottla.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(ottla, name) is not None
    assert name in dir(ottla)


def test_type_checkers_see_the_same_names_in_the_same_modules() -> None:
    tree = ast.parse(Path(ottla.__file__).read_text())
    typed = {
        name.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert typed == ottla._HOMES
    assert {*typed, "__version__"} == set(ottla.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Productor'"):
        ottla.Productor  # noqa: B018


def test_importing_the_package_imports_next_to_nothing() -> None:
    program = "import ottla, sys; print([name for name in sys.modules if name.startswith('ottla.')])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['ottla.model', 'ottla.model.version']"


def deep_imports(text: str) -> list[str]:
    found = re.findall(r"^\s*(?:from|import) (ottla(?:\.\w+)*)", text, re.MULTILINE)
    return [name for name in found if name not in PUBLIC]


def deep_names(text: str) -> list[str]:
    """Names such as `ottla.spark.runtime.session`; settings such as `ottla.spark.groups` are none, and neither are the
    names of loggers.
    """
    settings = (*BROKER_SETTINGS, *TOPIC_SETTINGS)
    text = re.sub(r'"logger": "[\w.]+"|broker-logger \d+ [\w.]+=[A-Z]+', "", text)
    return [
        f"ottla.{package}.{name}"
        for package, name in re.findall(r"\bottla\.(\w+)\.(\w+)", text)
        if (SOURCE / package).is_dir()
        and not any(each.startswith(f"ottla.{package}.{name}") for each in settings)
        and (f"ottla.{package}" not in PUBLIC or f'"{name}"' not in (SOURCE / package / "__init__.py").read_text())
    ]


def test_documentation_and_examples_need_no_deep_import() -> None:
    assert len(PAGES) > 20 and len(EXAMPLES) > 5
    deep = {
        path.name: names
        for path in [*PAGES, *EXAMPLES]
        if (names := [*deep_imports(path.read_text()), *deep_names(path.read_text())])
    }
    assert not deep


def test_no_module_hides_a_name_of_the_spark_vocabulary() -> None:
    """Looked at in a process of its own, since it depends on what was imported before."""
    program = (
        "import ottla.spark as s, ottla.spark.runtime.quiet, ottla.spark.streams.tables, types\n"
        "print([name for name in s.__all__ if isinstance(getattr(s, name), types.ModuleType)])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
