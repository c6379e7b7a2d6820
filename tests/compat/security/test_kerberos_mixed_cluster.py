"""Nodes of Ottla and of Kafka that log in to each other by Kerberos, with a real KDC, over TLS. Clients use PLAIN."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.cluster.whole import create, until_in_sync
from tests.compat.security.test_secure_mixed_cluster import TOPICS, SecureMixedCluster, check
from tests.compat.test_mixed_cluster import MIXES
from tests.server.security.secure_writers import PARTITIONS, Writers
from tests.server.security.secured import PASSWORDS, Way
from tests.support.clients.kerberos import HOST, SERVICE, keytab_login
from tests.support.processes.clusters import Process, running
from tests.support.processes.kafka import RealKafka
from tests.support.processes.kdc import REALM, Kdc

KERBEROS = Way("GSSAPI", "GSSAPI")


class KerberosMixedCluster(SecureMixedCluster):
    def __init__(self, directory: Path, words: tuple[str, ...], kdc: Kdc) -> None:
        self._kdc = kdc
        self._keytab = kdc.add(f"{SERVICE}/{HOST}")
        super().__init__(directory, words, KERBEROS)

    def _host(self, id: int) -> str:
        return HOST

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        login = keytab_login(f"{SERVICE}/{HOST}@{REALM}", self._keytab)
        own = {f"listener.name.{name}.gssapi.sasl.jaas.config": login for name in ("sasl_ssl", "controller")}
        own |= {"sasl.kerberos.service.name": SERVICE, "super.users": f"User:admin;User:{SERVICE}"}
        return super().settings_of(id, directory) | own

    def make(self, id: int, directory: Path) -> Process:
        made = super().make(id, directory)
        if isinstance(made, RealKafka):
            made._jvm_options = (*made._jvm_options, self._kdc.java_option)
        return made

    def librdkafka(self) -> dict[str, str]:
        login = {"sasl.mechanisms": "PLAIN", "sasl.username": "admin", "sasl.password": PASSWORDS["admin"]}
        return super().librdkafka() | login


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES)
def test_brokers_of_both_kinds_replicate_by_kerberos(mix: str, java_tools: None, kdc: Kdc, tmp_path: Path) -> None:
    cluster = KerberosMixedCluster(tmp_path, MIXES[mix], kdc)
    with running(cluster):
        create(cluster, TOPICS, PARTITIONS, len(cluster.brokers))
        until_in_sync(cluster, TOPICS, PARTITIONS)
        with Writers(cluster.librdkafka()) as writers:
            writers.go_on()
            victim = cluster.ours[-1]
            cluster.kill(victim)
            writers.go_on()
            cluster.start_node(victim)
            until_in_sync(cluster, TOPICS, PARTITIONS)
            writers.go_on()
        check(cluster, writers)
