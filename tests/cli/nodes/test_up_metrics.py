"""`ottla up` and the metrics of its nodes: it prints where they are, and they are there; also those of a secure one."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.support.processes.local_cluster import LocalCluster

from ottla.cli.nodes.local_cluster import define, define_broker

AT = "metrics at "


def url_of(cluster: LocalCluster) -> str:
    return cluster.wait_for(AT).partition(AT)[2]


def first_look(*options: str, env: dict[str, str] | None = None) -> dict[str, object]:
    """The first broker, as `ottla top` finds it with the node's metrics."""
    done = invoke(*options, "top", "--once", "--json", "--interval", "0.1", env=env or {})
    assert done.code == 0, done.err
    (row,) = json.loads(done.out.splitlines()[-1])["rows"]
    assert isinstance(row, dict)
    return row


@pytest.mark.parametrize("words", [(), ("--controllers", "1")])
def test_the_printed_address_answers(tmp_path: Path, words: Sequence[str]) -> None:
    """Of a single node, and of a cluster that is described by files."""
    cluster = LocalCluster(tmp_path / "data", *words)
    try:
        urls = url_of(cluster).split(", ")
        assert len(urls) == (2 if words else 1)
        for url in urls:
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert b"\nottla_build_info{" in answer.read()
        if not words:
            row = first_look(env={"OTTLA_BOOTSTRAP": cluster.bootstrap})
            assert row["idle"] is not None, "commands find the address in the settings of the node"
    finally:
        assert cluster.stop() == 0


def test_a_secure_cluster_tells_its_users(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    cluster = LocalCluster(directory, "--secure")
    try:
        url = url_of(cluster)
        assert url.startswith("https://127.0.0.1:") and url.endswith("/metrics")
        trusting = ssl.create_default_context(cafile=str(directory / "secure" / "ca.pem"))
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=60, context=trusting)
        with refused.value:
            assert refused.value.code == HTTPStatus.UNAUTHORIZED
        password = (directory / "secure" / "admin.password").read_text().strip()
        login = base64.b64encode(f"admin:{password}".encode()).decode()
        request = urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
        with urllib.request.urlopen(request, timeout=60, context=trusting) as answer:
            assert b"\nottla_build_info{" in answer.read()
        cluster.wait_for("Ctrl-C stops it")  # the files of clients are written before
        row = first_look("--command-config", str(directory / "secure" / "client.properties"))
        assert row["idle"] is not None
    finally:
        assert cluster.stop() == 0


def test_a_node_that_is_added_to_a_secure_cluster_has_them_too(tmp_path: Path) -> None:
    first, *_ = define(tmp_path / "data", 1, None, ("127.0.0.1", 0), secure=True)
    added = define_broker(tmp_path / "data")
    found = [each.values["ottla.metrics.listener"] for each in (first, added)]
    assert all(each.startswith("HTTPS://127.0.0.1:") for each in found) and found[0] != found[1]
