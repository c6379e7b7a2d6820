"""From `ottla.remote.storage` to a store. What a kind of store needs is imported only when there is one."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from ottla.model.store_location import StoreKind, StoreLocation
from ottla.tier.stores.errors import StoreBroken, StoreDenied, StoreError, StoreUnavailable
from ottla.tier.stores.patient import PatientObjectStore
from ottla.tier.stores.port import ObjectStore


async def open_store(location: StoreLocation, rng: random.Random) -> ObjectStore:
    """Returns the store with its bounds and repetitions. Raises `StoreError`; a cloud is not asked anything yet."""
    return PatientObjectStore(await asyncio.to_thread(_opened, location), rng)


def _opened(location: StoreLocation) -> ObjectStore:
    if location.kind is StoreKind.FILE:
        return _directory(Path(location.prefix))
    try:
        from ottla.tier.stores.buckets import open_cloud
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "obstore":
            raise
        raise StoreBroken(f"{location.shown} needs the package obstore", "pip install 'ottla[tiered]'") from None
    return open_cloud(location)


def _directory(root: Path) -> ObjectStore:
    from ottla.tier.stores.directory import DirectoryObjectStore
    from ottla.tier.stores.files import prepare

    failure: StoreError
    try:
        prepare(root)
    except FileNotFoundError:
        failure = StoreUnavailable(f"{root.parent} does not exist", "make it, or mount its disk")
    except PermissionError as error:
        failure = StoreDenied(f"{root}: {error.strerror}", "the broker's user needs to read and write the directory")
    except OSError as error:
        failure = StoreBroken(f"{root}: {error.strerror}")
    else:
        return DirectoryObjectStore(root)
    raise failure
