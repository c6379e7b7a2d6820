"""Brokers come, are heard of, and go: registration, heartbeats, fencing."""

from __future__ import annotations

import pytest
from tests.cluster.bench import Cluster, broker

from ottla.cluster.commands.assign_directories import AssignReplicasToDirs, Placement
from ottla.cluster.commands.fence import FenceBroker, UnregisterBroker
from ottla.cluster.commands.heartbeat import BrokerHeartbeat
from ottla.cluster.commands.register_broker import RegisterBroker
from ottla.cluster.commands.start import Activate, RegisterController, StartBroker
from ottla.cluster.entities import Controller
from ottla.cluster.features import METADATA_VERSION, FeatureRange
from ottla.model.errors import ApiError, ErrorCode


def three(**options: str) -> Cluster:
    cluster = Cluster(brokers=0, properties=options)
    for id in (1, 2, 3):
        cluster.join(id)
    return cluster


def refused(cluster: Cluster, command: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        cluster.submit(command)  # type: ignore[arg-type]
    return caught.value.code


def test_a_broker_is_fenced_until_it_has_read_of_its_registration() -> None:
    cluster = Cluster(brokers=0)
    epoch = cluster.register(1)
    assert epoch == cluster.state.brokers[1].epoch == len(cluster.journal) - 1
    early = cluster.heartbeat(1, metadata_offset=epoch - 1)
    assert (early.caught_up, early.fenced) == (False, True) and cluster.state.brokers[1].fenced
    assert cluster.heartbeat(1, metadata_offset=epoch, want_fence=True) == (True, True, False)
    assert cluster.heartbeat(1, metadata_offset=epoch) == (True, False, False)
    assert not cluster.state.brokers[1].fenced
    assert cluster.heartbeat(1, want_fence=True) == (True, True, False)
    assert cluster.state.brokers[1].fenced


def test_an_id_is_taken_while_its_session_lives() -> None:
    cluster = three()
    cluster.pass_time(9_000)
    with pytest.raises(ApiError) as caught:
        cluster.register(1, incarnation=2)
    assert caught.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    before = cluster.state.brokers[1].epoch
    assert cluster.register(1) == before and not cluster.state.brokers[1].fenced  # the same incarnation amends
    cluster.pass_time(1)
    assert cluster.state.brokers[1].fenced
    assert cluster.register(1, incarnation=2) > before


def test_a_session_that_is_only_presumed_ends_when_a_process_comes_that_holds_the_same_directories() -> None:
    cluster = three()
    cluster.submit(Activate(()))
    cluster.heartbeat(2)
    other_disk = RegisterBroker(broker(1)._replace(incarnation_id=bytes(16), directories=(bytes(15) + b"9",)))
    assert refused(cluster, other_disk) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    before = cluster.state.brokers[1].epoch
    assert cluster.register(1, incarnation=2) > before and cluster.state.brokers[1].fenced
    with pytest.raises(ApiError) as caught:
        cluster.register(2, incarnation=2)  # it was heard of since
    assert caught.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_silent_broker_is_fenced_and_its_partitions_move() -> None:
    cluster = three()
    cluster.create("t", 6, replication_factor=3)
    led = [cluster.partition("t", index).leader for index in range(6)]
    assert sorted(led) == [1, 1, 2, 2, 3, 3]
    for _ in range(8):
        cluster.pass_time(2_000)
        cluster.heartbeat(2)
        cluster.heartbeat(3)
    assert [broker.fenced for broker in cluster.state.brokers.values()] == [True, False, False]
    for index, leader in enumerate(led):
        found = cluster.partition("t", index)
        assert found.leader in (2, 3) and sorted(found.isr) == [2, 3] and found.elr == ()
        assert found.leader_epoch == (1 if leader == 1 else 0) and found.partition_epoch == 1
    assert 1 not in cluster.state.index.by_isr


def test_fencing_by_an_old_epoch_or_twice_does_nothing() -> None:
    cluster = three()
    assert cluster.submit(FenceBroker(1, cluster.state.brokers[1].epoch - 1)) is False
    assert cluster.submit(FenceBroker(9, 1)) is False
    assert cluster.submit(FenceBroker(1, cluster.state.brokers[1].epoch)) is True
    assert cluster.submit(FenceBroker(1, cluster.state.brokers[1].epoch)) is False


def test_heartbeats_of_another_epoch_are_refused() -> None:
    cluster = three()
    assert refused(cluster, BrokerHeartbeat(1, 0, 0)) is ErrorCode.STALE_BROKER_EPOCH
    assert refused(cluster, BrokerHeartbeat(7, 0, 0)) is ErrorCode.STALE_BROKER_EPOCH


def test_a_new_controller_gives_everybody_a_whole_session() -> None:
    cluster = three()
    cluster.pass_time(8_000)
    cluster.timers.clear()
    cluster.submit(Activate(()))
    cluster.pass_time(9_000)
    assert not any(broker.fenced for broker in cluster.state.brokers.values())
    cluster.pass_time(1)
    assert all(broker.fenced for broker in cluster.state.brokers.values())


def test_controlled_shutdown_moves_leaders_and_waits_for_the_others_to_know() -> None:
    cluster = three()
    cluster.create("t", 3, replication_factor=3)
    read = len(cluster.journal) - 1
    cluster.heartbeat(2, metadata_offset=read)
    cluster.heartbeat(3, metadata_offset=read)
    assert cluster.heartbeat(1, want_shut_down=True) == (True, False, False)
    assert cluster.state.brokers[1].in_controlled_shutdown and not cluster.state.brokers[1].fenced
    assert all(1 not in cluster.partition("t", index).isr for index in range(3))
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down  # nobody has read it yet
    cluster.heartbeat(2)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(3)
    assert cluster.heartbeat(1, want_shut_down=True) == (True, True, True)
    assert cluster.state.brokers[1].fenced


def test_a_disk_that_fails_before_its_broker_is_unfenced_leads_nothing() -> None:
    cluster = Cluster(brokers=0)
    for id in (1, 2):
        cluster.join(id, directories=2)
    first, second = cluster.state.brokers[1].directories
    for name, directory in (("lost", first), ("kept", second)):
        cluster.create(name, -1, replication_factor=-1, assignments=((0, (1,)),))
        placement = Placement(directory, cluster.state.topics[name].id, 0)
        cluster.submit(AssignReplicasToDirs(1, cluster.state.brokers[1].epoch, (placement,)))
    cluster.fence(1)
    assert [cluster.partition(name).leader for name in ("lost", "kept")] == [-1, -1]
    assert not cluster.heartbeat(1, offline_directories=(first,)).fenced
    assert [cluster.partition(name).leader for name in ("lost", "kept")] == [-1, 1]
    assert cluster.state.brokers[1].directories == (second,)


def test_who_leads_nothing_may_stop_at_once() -> None:
    cluster = three()
    assert cluster.heartbeat(1, want_shut_down=True) == (True, True, True)
    assert cluster.heartbeat(1, want_shut_down=True) == (True, True, True)


def test_an_unregistered_broker_is_forgotten() -> None:
    cluster = three()
    cluster.create("t", 3, replication_factor=3)
    cluster.submit(UnregisterBroker(1))
    assert 1 not in cluster.state.brokers and 1 not in cluster.state.index.by_isr
    assert ("session", 1) not in cluster.timers
    assert refused(cluster, UnregisterBroker(1)) is ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"id": -1}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (bytes(15) + b"\x05",)}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (b"x" * 16, b"x" * 16)}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (bytes([1, 1]) * 8,)}, ErrorCode.INVALID_REGISTRATION),  # of broker 1
        ({"features": ((METADATA_VERSION, FeatureRange(7, 29)),)}, ErrorCode.UNSUPPORTED_VERSION),
        (
            {"features": ((METADATA_VERSION, FeatureRange(7, 30)),)},
            ErrorCode.UNSUPPORTED_VERSION,
        ),  # and no ELR, groups …
    ],
)
def test_what_a_registration_may_not_say(fields: dict[str, object], code: ErrorCode) -> None:

    cluster = Cluster()
    assert refused(cluster, RegisterBroker(broker(2)._replace(**fields))) is code


def test_controllers_have_ids() -> None:
    cluster = Cluster()
    controller = Controller(-1, bytes(16), (), cluster.state.brokers[1].features)
    assert refused(cluster, RegisterController(controller)) is ErrorCode.INVALID_REGISTRATION


def test_a_controller_that_slept_fences_nobody_at_once() -> None:
    cluster = three()
    cluster.now_ms += 60_000  # stopped, or starved; the heartbeats of this minute are still to be read
    for timer in list(cluster.timers.values()):
        if timer.key in (("session", 1), ("session", 2)):
            del cluster.timers[timer.key]
            cluster.submit(timer.command)
    assert not any(broker.fenced for broker in cluster.state.brokers.values())
    cluster.heartbeat(2)
    cluster.heartbeat(3)
    cluster.pass_time(9_000)
    cluster.heartbeat(2)
    cluster.heartbeat(3)
    cluster.pass_time(1)
    assert [broker.fenced for broker in cluster.state.brokers.values()] == [True, False, False]


@pytest.mark.parametrize(
    ("clean", "others", "leader", "isr", "epoch"),
    [
        (True, True, 1, (1, 2), 0),  # nobody could elect anybody meanwhile
        (False, True, 2, (2,), 1),  # it may have lost something, the other one has it
        (False, False, 1, (1,), 1),  # nobody else is there
    ],
)
def test_a_sole_controllers_own_broker_starts_at_once(
    clean: bool, others: bool, leader: int, isr: tuple[int, ...], epoch: int
) -> None:
    cluster = Cluster(brokers=1)
    cluster.join(2)
    cluster.create("t", -1, replication_factor=-1, assignments=((0, (1, 2)),))
    if not others:
        cluster.fence(2)
    again = broker(1)._replace(epoch=len(cluster.journal), incarnation_id=b"again" + bytes(11))
    cluster.submit(StartBroker(again, clean))
    found = cluster.partition("t")
    assert (found.leader, found.isr) == (leader, isr)
    assert found.leader_epoch == epoch
    assert ("session", 1) not in cluster.timers and not cluster.state.brokers[1].fenced


def test_a_sole_controllers_own_broker_waits_for_who_has_what_it_may_have_lost() -> None:
    cluster = Cluster(brokers=1)
    cluster.join(2)
    configs = (("min.insync.replicas", "2"),)
    cluster.create("t", -1, replication_factor=-1, assignments=((0, (1, 2)),), configs=configs)
    cluster.fence(2)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))
    again = broker(1)._replace(epoch=len(cluster.journal), incarnation_id=b"again" + bytes(11))
    cluster.submit(StartBroker(again, clean=False))
    found = cluster.partition("t")
    assert (found.leader, found.isr, found.elr) == (-1, (), (2,))
    cluster.heartbeat(2)
    found = cluster.partition("t")
    assert (found.leader, found.isr, found.recovering) == (2, (2,), 0)
