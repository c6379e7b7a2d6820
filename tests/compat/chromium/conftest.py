"""A browser, and a console for a crowded cluster with a schema registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser
from tests.compat.chromium.browser import chromium
from tests.compat.chromium.crowd import SCRIPT, SUBJECT, fill
from tests.console.consoles import running_console
from tests.support import tools

from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.console.options import ConsoleOptions
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("crowd"), {"num.partitions": "1"}) as broker:
        with ThreadPoolExecutor(1) as thread:  # this one may have playwright's event loop already
            thread.submit(asyncio.run, fill(broker.bootstrap)).result()
        yield broker


@pytest.fixture(scope="module")
def url(crowded: EmbeddedBroker) -> Iterator[str]:
    registry = RegistryOptions.of(crowded.registry.url)
    for fields in ([], [{"name": "more", "type": "string", "default": SCRIPT}]):
        schema = {"type": "record", "name": "R", "doc": SCRIPT, "fields": [{"name": "a", "type": "int"}, *fields]}
        SchemaRegistry(registry).register(SUBJECT, SchemaSource(json.dumps(schema)))
    with running_console(ConsoleOptions(crowded.bootstrap, port=0, registry=registry)) as console:
        yield console.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """As long as it is there, playwright has an event loop in this thread: no longer than for one file, since tests of
    others begin loops of their own.
    """
    tools.require(tools.missing_browser())
    with chromium() as browser:
        yield browser
