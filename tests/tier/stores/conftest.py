"""Stores of every kind. The servers are started once for a module that needs them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
from tests.support import tools
from tests.support.processes import azurite, versitygw
from tests.support.processes.azurite import AzureServer, azure_server
from tests.support.processes.versitygw import S3Server, s3_server
from tests.tier.stores.places import Place, place_of

from ottla.sim.world.object_store import MemoryObjectStore
from ottla.sim.world.object_store_faults import FaultyObjectStore, ObjectStoreFaults
from ottla.tier.stores.patient import PatientObjectStore
from ottla.tier.stores.port import ObjectStore

_numbers = itertools.count()
# Without what callers have to bear: late changes, and listings that lag (tests/sim/world).
FAULTS = ObjectStoreFaults(delay_s=(0.0, 2.0), failure_rate=0.2, lost_answer_rate=0.1)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    tools.require(tools.missing_versitygw())
    with pytest.MonkeyPatch.context() as patched, s3_server(tmp_path_factory.mktemp("s3")) as server:
        for name, value in versitygw.ENVIRONMENT.items():
            patched.setenv(name, value)
        yield server


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    tools.require(tools.missing_node())
    with pytest.MonkeyPatch.context() as patched, azure_server(tmp_path_factory.mktemp("azure")) as server:
        for name, value in azurite.ENVIRONMENT.items():
            patched.setenv(name, value)
        yield server


@pytest.fixture(params=["file", "memory", "faulty", "s3", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """One of each kind, without objects."""
    name = str(request.param)
    prefix = f"t{next(_numbers)}/of-a-test"
    if name == "file":
        return place_of(name, f"file://{tmp_path}/store")
    if name == "s3":
        return place_of(name, request.getfixturevalue("s3").url(prefix), uvloop.new_event_loop)  # as a broker's
    if name == "azure":
        return place_of(name, request.getfixturevalue("azure").url(prefix))
    memory = MemoryObjectStore(page_objects=7)

    async def open_memory() -> ObjectStore:
        rng = random.Random(name)
        return PatientObjectStore(memory if name == "memory" else FaultyObjectStore(memory, rng, FAULTS), rng)

    return Place(name, open_memory, is_simulated=True)
