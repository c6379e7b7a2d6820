"""A broker and a console for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, running_console

from ottla.console.options import ConsoleOptions
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def visitor(broker: EmbeddedBroker) -> Iterator[Visitor]:
    """A visitor of a console that everybody may use."""
    with running_console(ConsoleOptions(broker.bootstrap, port=0)) as console:
        yield Visitor(console.url)
