"""Conversion of the lists in a registration (endpoints, supported features) from and to requests and records.

Four messages have the same lists, each with its own classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from ottla.cluster.entities import ListenerEndpoint
from ottla.cluster.features import FeatureRange

T = TypeVar("T")


class ListedEndpoint(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def security_protocol(self) -> int: ...


class ListedFeature(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def min_supported_version(self) -> int: ...

    @property
    def max_supported_version(self) -> int: ...


def endpoints_of(listed: Iterable[ListedEndpoint]) -> tuple[ListenerEndpoint, ...]:
    return tuple(ListenerEndpoint(end.name, end.host, end.port, end.security_protocol) for end in listed)


def features_of(listed: Iterable[ListedFeature]) -> tuple[tuple[str, FeatureRange], ...]:
    return tuple((item.name, FeatureRange(item.min_supported_version, item.max_supported_version)) for item in listed)


def list_endpoints(kind: Callable[..., T], endpoints: Sequence[ListenerEndpoint]) -> list[T]:
    """Return the endpoints as objects of `kind`, the message's own class."""
    return [
        kind(name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol) for end in endpoints
    ]


def list_features(kind: Callable[..., T], features: Sequence[tuple[str, FeatureRange]]) -> list[T]:
    """Return the features as objects of `kind`, the message's own class."""
    return [kind(name=name, min_supported_version=low, max_supported_version=high) for name, (low, high) in features]
