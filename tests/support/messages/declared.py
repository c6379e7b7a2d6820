"""The class of Ottla for each of Kafka's message definitions."""

import importlib
import keyword
import pkgutil
import re
from functools import cache
from types import ModuleType

from tests.support.messages.definitions import Definition

import ottla.wire.header
import ottla.wire.journal
import ottla.wire.messages
from ottla.wire.message import Data, Request, Response, Struct

# Removed with ZooKeeper in 4.0: empty definitions ("validVersions": "none") that reserve the API keys 4 to 7.
RETIRED = {
    name + kind
    for name in ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
    for kind in ("Request", "Response")
}


def snake(name: str) -> str:
    """The name of a field in Ottla's spelling."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    words = words.replace("k_raft", "kraft").replace("enable2_pc", "enable_2pc")  # one word each, camel case or not
    return words + "_" if keyword.iskeyword(words) else words


@cache
def declared() -> dict[str, type[Struct]]:
    """Every message class of the package by its own name."""
    modules: list[ModuleType] = [ottla.wire.header]
    for package in (ottla.wire.messages, ottla.wire.journal):
        names = [found.name for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
        modules += map(importlib.import_module, names)
    classes: dict[str, type[Struct]] = {}
    for module in modules:
        for value in vars(module).values():
            is_message = isinstance(value, type) and issubclass(value, Request | Response | Data)
            if is_message and value.__module__ == module.__name__:
                classes[value.__name__] = value
    return classes


def class_of(definition: Definition) -> type[Struct]:
    return declared()[definition.name]
