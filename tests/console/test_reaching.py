"""What a console says it cannot reach: nothing where all answer, also where visitors have to sign in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.console.signed_in import secured_options

from ottla.client.registry import RegistryOptions
from ottla.console.options import ConsoleOptions
from ottla.console.reaching import unreachable
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

NOBODY = "127.0.0.1:1"


def test_who_does_not_answer_is_named(broker: EmbeddedBroker) -> None:
    answering = RegistryOptions.of(broker.registry.url)
    silent = RegistryOptions.of(f"http://{NOBODY}")
    assert asyncio.run(unreachable(ConsoleOptions(broker.bootstrap))) == []
    assert asyncio.run(unreachable(ConsoleOptions(broker.bootstrap, registry=answering))) == []
    (registry,) = asyncio.run(unreachable(ConsoleOptions(broker.bootstrap, registry=silent)))
    assert NOBODY in registry.what and "schema registry" in registry.what and "--registry" in (registry.hint or "")
    (cluster,) = asyncio.run(unreachable(ConsoleOptions(NOBODY, registry=answering)))
    assert cluster.what.startswith(f"the cluster at {NOBODY} cannot be reached: ")
    assert "--bootstrap" in (cluster.hint or "")
    assert len(asyncio.run(unreachable(ConsoleOptions(NOBODY, registry=silent)))) == 2


def test_where_visitors_sign_in_nobody_has_to_for_this(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        options = secured_options(broker, registry=True)
        assert asyncio.run(unreachable(options)) == []
        plain = replace(options, security=None, signs_in=False)
        (cluster,) = asyncio.run(unreachable(plain))
        assert cluster.what.startswith(f"the cluster at {broker.bootstrap} cannot be reached: ")
        assert "security.protocol" in (cluster.hint or "")
