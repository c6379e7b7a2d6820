"""The interface between the REST API and the store of the registry's records: a topic, or (in tests) a list.

Rules for implementations:
- `submit` calls are handled one at a time: decide → write → apply → reply, and the next one decides on the new state.
- Records are durable before the reply; if that is not known, `Unavailable` is raised, and nothing is applied until the
  log has been read.
- Only one instance writes. The others raise NotLeader, and `forward` sends the whole request to the leader, and returns
  when this instance has read the result.
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
    """Another instance writes; `url` is its address, None while no leader is elected."""

    def __init__(self, url: str | None) -> None:
        super().__init__("another instance of the registry is the leader" if url else "no leader is known")
        self.url = url


class LeadsNow(Exception):
    """This instance was elected while it was forwarding a request, which it can process itself."""


class Unavailable(Exception):
    """The topic cannot be written or read. `timed_out` distinguishes 50002 (not in time) from 50001 (not at all)."""

    def __init__(self, message: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class ForwardFailed(Exception):
    """The leader could not be reached, or its answer not understood (50003)."""


@dataclass(frozen=True, slots=True)
class About:
    """Facts about an instance."""

    cluster_id: str
    group_id: str = "schema-registry"
    version: str = ""
    commit: str = ""


class RegistryStorePort(Protocol):
    """The store of the registry's records."""

    @property
    def state(self) -> RegistryMachine:
        """The state that has been read so far."""
        ...

    async def in_thread(self, work: Callable[[RegistryMachine], T]) -> T:
        """Run work that may take long without holding up requests, and return its result; the state does not change
        meanwhile.
        """
        ...

    @property
    def about(self) -> About: ...

    async def submit(self, command: RegistryCommand) -> Any:
        """Let the machine decide, and write its records. Raises RegistryRefusal, NotLeader, Unavailable."""
        ...

    async def forward(self, request: Request) -> Response:
        """Return the leader's answer to the request. Raises ForwardFailed, NotLeader(None), LeadsNow."""
        ...
