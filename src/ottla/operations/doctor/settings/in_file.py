"""Checks of a server.properties that say nothing about a running cluster, or that a cluster would not have started
with.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ottla.client.security.names import is_secret_name
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import unknown, without_effect
from ottla.model.errors import ApiError
from ottla.model.settings.controller import CONTROLLER_QUORUM_VOTERS
from ottla.model.settings.node import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from ottla.model.topic_settings import OTTLA_FSYNC_BEFORE_ACK, RETENTION_BYTES
from ottla.operations.doctor.check import HealthLevel, Symptom, some
from ottla.operations.doctor.settings.node_settings import FILE, SettingsSeen
from ottla.operations.security.findings import file_finding
from ottla.operations.security.sources import keystores_of
from ottla.security.host import is_loopback
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import broker_endpoints, controller_endpoints
from ottla.server.settings.listeners import listened
from ottla.server.settings.start_refusals import check_start

_CLEANED = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108  # where nothing should be kept


@FILE.check(
    "setting-unknown",
    "A setting that nobody knows",
    why="The node only warns about it and goes on with the default of what was meant.",
    do="docs/settings.md lists all settings; remove or correct the line",
)
def setting_unknown(settings: SettingsSeen) -> Iterator[Symptom]:
    for name, nearest in unknown(settings.values, BROKER_SETTINGS):
        do = f"did you mean {nearest}? Correct the line" if nearest else None
        yield Symptom(f"there is no setting {name}", do=do)


@FILE.check(
    "setting-idle",
    "A setting without effect",
    why="Whoever set it relies on something that does not happen.",
    do="docs/settings.md says why it has no effect here; remove the line",
)
def setting_idle(settings: SettingsSeen) -> Iterator[Symptom]:
    for name in without_effect(settings.values, BROKER_SETTINGS):
        yield Symptom(f"{name}={settings.values[name]} has no effect")


@FILE.check(
    "setting-contradictory",
    "Settings that a node does not start with",
    why="The node refuses to start: a value is none of its setting, or settings contradict each other.",
    do="docs/settings.md says what each setting means and which values it takes",
    level=HealthLevel.PROBLEM,
)
def setting_contradictory(settings: SettingsSeen) -> Iterator[Symptom]:
    try:
        configs = Configs(settings.values)
        check_start(configs, listened(configs.broker))
    except ApiError as error:
        yield Symptom(error.text)


@FILE.check(
    "advertised-local",
    "A node of several advertises an address of loopback",
    why="Clients and nodes on other machines are sent to themselves, and find nothing or the wrong node there.",
    do="advertised.listeners=NAME://HOST:PORT with a host that the other machines resolve",
    level=HealthLevel.PROBLEM,
)
def advertised_local(settings: SettingsSeen) -> Iterator[Symptom]:
    if settings.has_others and settings.is_reachable:
        for each in (*broker_endpoints(settings.broker), *controller_endpoints(settings.broker)):
            if is_loopback(each.host):
                yield Symptom(f"listener {each.name} is advertised as {each.host}:{each.port}")


@FILE.check(
    "port-floating",
    "A listener takes any free port",
    why="After each restart clients and other nodes look for the node at its old port.",
    do="give the listener a port of its own in listeners",
)
def port_floating(settings: SettingsSeen) -> Iterator[Symptom]:
    for each in listened(settings.broker):
        if each.port == 0:
            yield Symptom(f"listener {each.name} has port 0")


@FILE.check(
    "data-in-tmp",
    "A data directory where the system cleans up",
    why="What lies there is deleted at a restart of the machine, or when it has not been touched for some days.",
    do="log.dirs=/var/lib/ottla, or another directory of its own disk",
)
def data_in_tmp(settings: SettingsSeen) -> Iterator[Symptom]:
    for each in Configs(settings.values).log_dirs():
        path = os.path.abspath(each)
        if any(Path(path).is_relative_to(cleaned) for cleaned in _CLEANED):
            yield Symptom(f"log.dirs has {each}")


@FILE.check(
    "data-same-disk",
    "Data directories that share a disk",
    why="They compete for the same disk and fail together, and free space is counted twice.",
    do="one entry of log.dirs for each disk",
)
def data_same_disk(settings: SettingsSeen) -> Iterator[Symptom]:
    devices = defaultdict(list)
    for each in Configs(settings.values).log_dirs():
        if Path(each).is_dir():
            devices[Path(each).stat().st_dev].append(each)
    for shared in devices.values():
        if len(shared) > 1:
            yield Symptom(f"{some(shared)} lie on one file system")


@FILE.check(
    "secrets-readable",
    "Others can read the node's key or passwords",
    why="Who has them can pose as the node.",
    do="chmod 600 FILE",
    level=HealthLevel.PROBLEM,
)
def secrets_readable(settings: SettingsSeen) -> Iterator[Symptom]:
    files = {store.path: "a private key" for store in keystores_of(settings.values) if Path(store.path).is_file()}
    if settings.path is not None and any(map(is_secret_name, settings.values)):
        files[str(settings.path)] = "passwords"
    for path, holds in files.items():
        for found in file_finding(path, Path(path).stat().st_mode, holds):
            yield Symptom(found.what, why=found.why, do=found.fix)


@FILE.check(
    "retention-beyond-disk",
    "Retention allows more than the disk holds",
    why="The disk is full before anything is deleted, and a full disk refuses records.",
    do="log.retention.bytes counts for each partition: lower it, or take a larger disk (`ottla plan`)",
)
def retention_beyond_disk(settings: SettingsSeen) -> Iterator[Symptom]:
    allowed = settings.node.topic_defaults[RETENTION_BYTES]
    there = [each for each in Configs(settings.values).log_dirs() if Path(each).is_dir()]
    devices = {Path(each).stat().st_dev: shutil.disk_usage(each).total for each in there}
    partitions = settings.broker[NUM_PARTITIONS]
    if devices and allowed * partitions > sum(devices.values()):
        yield Symptom(
            f"log.retention.bytes={allowed}, for each of the {partitions} partitions that a topic has unless its "
            f"creator says more, is more than the {sum(devices.values())} bytes of its disks"
        )


@FILE.check(
    "acks-in-memory",
    "Acknowledged records are in memory of one machine only",
    why="Without another replica, records of the last seconds are lost when the machine loses power "
    "(a crash of the node alone loses none).",
    do="ottla.fsync.before.ack=true, or three nodes with default.replication.factor=3 (docs/durability.md)",
)
def acks_in_memory(settings: SettingsSeen) -> Iterator[Symptom]:
    if not settings.node.topic_defaults[OTTLA_FSYNC_BEFORE_ACK] and settings.is_reachable:
        replicas = settings.broker[DEFAULT_REPLICATION_FACTOR]
        if replicas == 1 or not settings.has_others:
            yield Symptom("ottla.fsync.before.ack is false, and a topic has one replica unless its creator says more")


@FILE.check(
    "voters-even-file",
    "The controllers are an even number",
    why="Four voters tolerate no more failures than three, and two none at all: one node more that can fail.",
    do="three or five entries in controller.quorum.voters",
)
def voters_even_file(settings: SettingsSeen) -> Iterator[Symptom]:
    voters = settings.broker[CONTROLLER_QUORUM_VOTERS]
    if voters and len(voters) % 2 == 0:
        yield Symptom(f"controller.quorum.voters names {len(voters)} nodes")
