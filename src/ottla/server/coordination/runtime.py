"""CoordinatorRuntime: the environment of coordinators of every kind.

A coordinator is a machine (`ottla.machine`) on a partition of an internal topic. It needs that partition, clocks,
timers and turns on the event loop, the metadata that says which partitions it leads, and a way to create the topic.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.machine.keyed import Types
from ottla.model.errors import ApiError
from ottla.server.coordination.host import CoordinatorMachine, ViewT
from ottla.server.coordination.hosts import Coordinators
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage


class CoordinatorRuntime:
    """`create_topic` has the controller create an internal topic; it is set to None when the topic exists, or to the
    error.
    """

    def __init__(
        self,
        runtime: Runtime,
        storage: Storage,
        metadata: MetadataHost,
        create_topic: Callable[[str], Later[ApiError | None]],
    ) -> None:
        self.runtime = runtime
        self.storage = storage
        self.metadata = metadata
        self._create_topic = create_topic

    def coordinators(
        self,
        topic: str,
        types: Types,
        make_machine: Callable[[int], CoordinatorMachine[ViewT]],
        write_timeout_ms: Callable[[], int],
    ) -> Coordinators[ViewT]:
        """Return the coordinators on the partitions of one internal topic. A reply waits at most `write_timeout_ms` for
        its records to reach all in-sync replicas.
        """
        return Coordinators(
            self.runtime,
            self.storage,
            self.metadata,
            self._create_topic,
            topic,
            types,
            make_machine,
            write_timeout_ms,
        )
