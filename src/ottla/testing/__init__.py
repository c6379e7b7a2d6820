"""The pytest plugin: a real broker inside the test process, and its classes for tests that make brokers by themselves.

Names are imported when they are first used, so that the plugin does not slow down tests that need no broker.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.broker import EmbeddedBroker as EmbeddedBroker
    from ottla.testing.secure import SecureBroker as SecureBroker

_HOMES = {"EmbeddedBroker": "ottla.testing.broker", "SecureBroker": "ottla.testing.secure"}

__all__ = ["EmbeddedBroker", "SecureBroker"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
