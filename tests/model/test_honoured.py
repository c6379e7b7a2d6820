"""What the documentation calls effective is read somewhere."""

import ast
from pathlib import Path

import ottla
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.honoured import HONOURED
from ottla.model.topic_settings import TOPIC_SETTINGS

SOURCE = Path(ottla.__file__).parent
KNOWN = {**BROKER_SETTINGS, **TOPIC_SETTINGS, **GROUP_SETTINGS}
CONSTANTS = {name.upper().replace(".", "_"): name for name in KNOWN}
# Read in a way that a search cannot see: built from the codec's name, or standing in for another name.
HIDDEN = {"compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "broker.id"}


def names_read() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        if SOURCE / "model" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in KNOWN:
                found.add(node.value)
            elif isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                if name in CONSTANTS:
                    found.add(CONSTANTS[name])
    return found


def test_no_setting_is_called_effective_that_nobody_reads() -> None:
    backed = names_read() | HIDDEN
    for settings in (TOPIC_SETTINGS, GROUP_SETTINGS):
        for name in [name for name in backed if name in settings]:
            backed.update(settings[name].synonyms)
    assert sorted(HONOURED - backed) == []
