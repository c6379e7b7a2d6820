"""Data directories that a node makes are for their owner only; those that are there keep their mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.nodes.local_cluster import define
from ottla.operations.security.findings import data_finding
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    former = os.umask(0o022)
    yield
    os.umask(former)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_node_makes_its_directory_for_its_owner(tmp_path: Path) -> None:
    data = tmp_path / "made" / "data"
    with EmbeddedBroker(data):
        assert mode(data) == 0o700 and not list(data_finding(str(data), mode(data)))
        assert mode(data.parent) == 0o755, "what is above it is not the node's"


def test_so_do_the_nodes_of_a_cluster(tmp_path: Path) -> None:
    data = tmp_path / "data"
    define(data, 2, 1, ("127.0.0.1", 0))
    assert {mode(data / name) for name in (".", "node-1", "node-2", "node-101")} == {0o700}


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    for name in ("alone", "cluster"):
        (tmp_path / name).mkdir(mode=0o755)
    with EmbeddedBroker(tmp_path / "alone"):
        assert mode(tmp_path / "alone") == 0o755
    define(tmp_path / "cluster", 1, None, ("127.0.0.1", 0))
    assert mode(tmp_path / "cluster") == 0o755
