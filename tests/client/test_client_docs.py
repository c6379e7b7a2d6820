"""docs/client.md: its blocks run, one after the other, in one namespace, against a broker."""

import ast
import asyncio
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import WAIT_S

from ottla.client.admin import Admin
from ottla.testing.broker import EmbeddedBroker

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
BEATS = ("group.share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms")


def test_every_block_runs(
    ottla_broker_factory: Callable[..., EmbeddedBroker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = ottla_broker_factory(**dict.fromkeys(BEATS, 100))
    text = PAGE.read_text()
    blocks = [(text.count("\n", 0, each.start()), each[1]) for each in re.finditer(r"```python\n(.*?)```", text, re.S)]
    (profiles,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (tmp_path / "ottla").mkdir()
    (tmp_path / "ottla" / "profiles.toml").write_text(profiles)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    names: dict[str, Any] = {}

    async def run() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.create("orders", partitions=4)  # as the README does, and its readers come here next
        for line, source in blocks:
            # Lines are numbered as in the page, so that a traceback points into it.
            code = compile("\n" * (line + 1) + source, PAGE.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            async with asyncio.timeout(WAIT_S):
                done = eval(code, names)
                if inspect.isawaitable(done):
                    await done
            names["BOOTSTRAP"] = broker.bootstrap

    asyncio.run(run())
    assert len(blocks) == 14
