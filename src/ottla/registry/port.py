"""What the REST API needs of whatever keeps the registry's records: a topic, or (in tests) a list.

Rules for who implements it:
- `submit` calls are taken one at a time: decide → write → apply → reply, and the next one decides on what that left.
- What is written is durable before the reply; if it is not known whether it is, `Unavailable`, and nothing is applied
  until the log has told.
- Only one instance writes. The others raise NotLeader, and `forward` hands the request, whole, to the one that does,
  and returns when this instance has read what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ottla.schemas.registry.commands import RegistryCommand
    from ottla.schemas.registry.machine import RegistryMachine

T = TypeVar("T")


class NotLeader(Exception):
    """Another instance writes; `url` is where, None while nobody is elected."""

    def __init__(self, url: str | None) -> None:
        super().__init__("another instance of the registry is the leader" if url else "no leader is known")
        self.url = url


class Unavailable(Exception):
    """The topic cannot be written or read. `timed_out` tells 50002 (not in time) from 50001 (not at all)."""

    def __init__(self, message: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class ForwardFailed(Exception):
    """The leader could not be asked, or not understood (50003)."""


@dataclass(frozen=True, slots=True)
class About:
    """What an instance says of itself."""

    cluster_id: str
    group_id: str = "schema-registry"
    version: str = ""
    commit: str = ""


class RegistryStorePort(Protocol):
    """Where the registry's records are."""

    @property
    def state(self) -> RegistryMachine:
        """What has been read so far, for reading."""
        ...

    async def aside(self, work: Callable[[RegistryMachine], T]) -> T:
        """The result of work that may take long, done where it holds nobody up; the state stands still meanwhile."""
        ...

    @property
    def about(self) -> About: ...

    async def submit(self, command: RegistryCommand) -> Any:
        """Have the machine decide and make it so. Raises Refused, NotLeader, Unavailable."""
        ...

    async def forward(self, request: Request) -> Response:
        """Let the leader answer. Raises ForwardFailed, NotLeader(None)."""
        ...
