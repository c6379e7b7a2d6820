"""The pages and actions, one module or folder per noun. Loading a module declares its routes."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Load all modules, so that their routes are declared."""
    for found in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(found.name)
