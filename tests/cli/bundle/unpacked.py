"""Make a bundle and look into it."""

from __future__ import annotations

import json
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run, invoke
from tests.support.ports import free_ports
from tests.support.processes.clusters import OttlaCluster


class Unpacked:
    """The members of a bundle, which only its owner can read, and its manifest."""

    def __init__(self, path: Path) -> None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        self.path = path
        self.members: dict[str, str] = {}
        with tarfile.open(path) as tar:
            for each in tar:
                file = tar.extractfile(each)
                assert file is not None and each.isfile()
                folder, _, name = each.name.partition("/")
                assert folder == path.name.removesuffix(".tar.gz")
                self.members[name] = file.read().decode()
        self.manifest = self.json("MANIFEST.json")
        listed = {each["name"]: each["size_bytes"] for each in self.manifest["members"]}
        sizes = {name: len(text.encode()) for name, text in self.members.items() if name != "MANIFEST.json"}
        assert listed == sizes

    def json(self, name: str) -> Any:
        return json.loads(self.members[name])

    def lines(self, name: str) -> list[Any]:
        return [json.loads(line) for line in self.members[name].splitlines()]

    @property
    def missing(self) -> dict[str, str]:
        return {each["what"]: each["reason"] for each in self.manifest["missing"]}

    @property
    def text(self) -> str:
        return "\n".join([self.path.name, *self.members, *self.members.values()])


def bundle(path: Path, *words: str, env: Mapping[str, str] | None = None) -> tuple[Unpacked, Run]:
    run = invoke("support-bundle", str(path), *words, env=dict(env or {}))
    assert run.code == 0, run.err
    return Unpacked(path), run


class MeasuredCluster(OttlaCluster):
    """Each node tells its metrics."""

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        (port,) = free_ports(1)
        return super().settings_of(id, directory) | {"ottla.metrics.listener": f"127.0.0.1:{port}"}
