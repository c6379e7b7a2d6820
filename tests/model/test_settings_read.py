"""A setting that is declared with an effect is read somewhere, and one that is read is declared so."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.setting import NOT_YET, Setting
from ottla.model.settings.node import BROKER_ID
from ottla.model.settings.registry import registry
from ottla.model.topic_settings import TOPIC_SETTINGS

SOURCE = Path(ottla.__file__).parent
ALL: list[Setting[Any]] = [
    setting
    for settings in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS, CLIENT_METRICS_SETTINGS, registry.settings)
    for setting in settings.values()
]
# Stands in for `node.id`, see `model/node_config.py`.
HIDDEN = {BROKER_ID}


def constants_used(path: Path) -> Iterator[Setting[Any]]:
    """The settings whose constants a module uses, imported by name or through the module that declares them."""
    text = path.read_text()
    if "settings" not in text:
        return
    tree = ast.parse(text)
    declaring = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ottla.model"):
            module = importlib.import_module(node.module or "")
            for name in node.names:
                found = getattr(module, name.name, None)
                if isinstance(found, Setting):
                    yield found
                else:
                    submodule = f"{node.module}.{name.name}"
                    declaring[name.asname or name.name] = submodule
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in declaring:
            try:
                module = importlib.import_module(declaring[node.value.id])
            except ImportError:
                continue
            found = getattr(module, node.attr, None)
            if isinstance(found, Setting):
                yield found


def settings_read() -> set[Setting[Any]]:
    """What modules above the declarations use, the rules for tenants among them, and the broker settings behind it."""
    found = {
        setting
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "model" or path.parent.name == "tenancy"
        for setting in constants_used(path)
    }
    for setting in list(found):
        found.update(setting.follows)
        found.update(bound for bound in (setting.low, setting.high) if bound is not None)
    return found | HIDDEN


def test_effective_is_what_is_read() -> None:
    read = settings_read()
    assert sorted(each.name for each in ALL if each.honoured and each not in read) == [], "nobody reads these"
    assert sorted(each.name for each in read if not each.honoured) == [], "these are read"


def test_a_reason_for_having_no_effect_is_a_clause() -> None:
    for setting in ALL:
        if setting.no_effect not in (None, NOT_YET):
            assert setting.no_effect and not setting.no_effect.endswith("."), setting.name
