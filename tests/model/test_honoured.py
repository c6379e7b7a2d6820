"""What the documentation calls effective is read somewhere, and what is read it calls effective."""

import ast
from pathlib import Path

import ottla
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config_checks import group_bounds
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.honoured import HONOURED, NOT_NEEDED
from ottla.model.topic_settings import TOPIC_SETTINGS

SOURCE = Path(ottla.__file__).parent
KNOWN = {**BROKER_SETTINGS, **TOPIC_SETTINGS, **GROUP_SETTINGS}
CONSTANTS = {name.upper().replace(".", "_"): name for name in KNOWN}
# Read in a way that a search cannot see: built from the codec's name, or standing in for another name.
HIDDEN = {"compression.gzip.level", "compression.zstd.level", "broker.id"}
# Of the same name and another meaning: Kafka's settings of clients, and what simulated nodes are configured with.
ELSEWHERE = ("model", "sim", "spark", "client")
# Read, and yet without effect: a node that has it set does not start; a setting that is never shown.
NO_EFFECT = {"authorizer.class.name", "internal.segment.bytes"}


def names_read() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ELSEWHERE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in KNOWN:
                found.add(node.value)
            elif isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                if name in CONSTANTS:
                    found.add(CONSTANTS[name])
    return found


def test_effective_is_what_is_read() -> None:
    backed = names_read() | HIDDEN
    for settings in (TOPIC_SETTINGS, GROUP_SETTINGS):
        for name in [name for name in backed if name in settings]:
            backed.update(settings[name].synonyms)
    backed.update(name for setting in GROUP_SETTINGS.values() for _, name in group_bounds(setting))
    assert sorted(HONOURED - backed) == [], "nobody reads these"
    assert sorted(backed - HONOURED - NO_EFFECT) == [], "these are read"


def test_what_is_not_needed_has_no_effect() -> None:
    assert NOT_NEEDED.keys() <= KNOWN.keys() - HONOURED
