"""`crc32c`, imported directly from the C extension of the package of that name.

The package itself reads its own metadata and prepares a command line when it is imported, which is more than a tenth of
the time that a node takes to start. If the extension is not found at its place, the package is imported as usual.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

_PACKAGE, _EXTENSION = "crc32c", "crc32c._crc32c"


def _load() -> Callable[[Any], int]:
    package = PathFinder.find_spec(_PACKAGE)
    spec = PathFinder.find_spec(_EXTENSION, package.submodule_search_locations) if package is not None else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c

        return crc32c
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Any], int] = module.crc32c
    return found


crc32c = _load()
