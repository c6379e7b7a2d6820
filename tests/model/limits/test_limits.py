"""Bounds that other things depend on."""

from ottla.model import limits
from ottla.model.broker_settings import BROKER_SETTINGS


def test_all_bounds_are_positive() -> None:
    bounds = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert len(bounds) > 50
    assert all(value > 0 for value in bounds.values())


def test_bounds_that_are_defaults_of_kafkas_settings() -> None:
    for name, bound in {
        "socket.request.max.bytes": limits.REQUEST_FRAME_BYTES_MAX,
        "max.incremental.fetch.session.cache.slots": limits.FETCH_SESSIONS_MAX,
        "fetch.max.bytes": limits.FETCH_BYTES_MAX,
        "message.max.bytes": limits.BATCH_BYTES_MAX,
        "max.request.partition.size.limit": limits.DESCRIBE_PARTITIONS_MAX,
        "sasl.server.max.receive.size": limits.REQUEST_FRAME_BYTES_BEFORE_AUTH_MAX,
    }.items():
        assert BROKER_SETTINGS[name].default == bound
