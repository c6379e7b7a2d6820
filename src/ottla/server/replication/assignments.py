"""Assignments: tells the controller in which data directory each replica of this node lies (KIP-858).

The controller needs this to move leaderships when a directory fails. An assignment that the controller knows is not
sent again. One request is under way at a time, and refused assignments are retried until they are accepted or outdated.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice

from ottla.client.errors import ClientError, error_code
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.quorum.controller_link import ControllerLink, error_of_whole
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.replication.session import Key
from ottla.wire.messages.cluster.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
)

log = logging.getLogger(__name__)

_Directory = AssignReplicasToDirsRequest.DirectoryData
_Topic = _Directory.TopicData
_GONE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Assignments:
    def __init__(self, loop: asyncio.AbstractEventLoop, metadata: MetadataHost, link: ControllerLink) -> None:
        self._loop = loop
        self._metadata = metadata
        self._link = link
        self._due: dict[Key, bytes] = {}  # partition → the id of its directory
        self._waiting: dict[Key, asyncio.Future[bool]] = {}
        self._sending: asyncio.Task[None] | None = None

    def tell(self, key: Key, directory_id: bytes) -> None:
        self._due[key] = directory_id
        if self._sending is None:
            self._sending = self._loop.create_task(self._send_all())

    async def told(self, key: Key, directory_id: bytes) -> bool:
        """Send an assignment and wait until the controller has accepted it; False if the replica does not exist any
        more.
        """
        self.forget(key)
        self.tell(key, directory_id)
        future: asyncio.Future[bool] = self._loop.create_future()
        self._waiting[key] = future
        return await future

    def forget(self, key: Key) -> None:
        self._due.pop(key, None)
        self._settle(key, False)

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        failures = 0
        try:
            while self._due:
                if await self._is_settled(dict(islice(self._due.items(), limits.ASSIGNMENTS_PER_REQUEST_MAX))):
                    failures = 0
                else:
                    pause_ms = min(limits.ASSIGNMENT_RETRY_MS << min(failures, 10), limits.ASSIGNMENT_RETRY_MS_MAX)
                    failures += 1
                    await asyncio.sleep(pause_ms / 1000)
        finally:
            self._sending = None

    async def _is_settled(self, told: dict[Key, bytes]) -> bool:
        try:
            return await self._send(told)
        except ClientError as error:
            log.info("the controller did not answer about directories: %s", error)
        except Exception:
            log.exception("the directories of replicas could not be told")
        return False

    async def _send(self, told: dict[Key, bytes]) -> bool:
        """Send one request; return whether all of its assignments are settled."""
        node_id = self._metadata.node_id
        request = AssignReplicasToDirsRequest(
            broker_id=node_id,
            broker_epoch=self._metadata.state.broker_epoch(node_id),
            directories=_directories(told),
        )
        answer = await self._link.ask(request, errors=error_of_whole)
        if answer.error_code:
            log.info("AssignReplicasToDirs was refused: %s", error_code(answer.error_code).name)
            return False
        settled = 0
        for directory in answer.directories:
            for topic in directory.topics:
                for data in topic.partitions:
                    key = Key(topic.topic_id, data.partition_index)
                    code = error_code(data.error_code)
                    if code == ErrorCode.NONE or code in _GONE:
                        settled += 1
                        # the replica may have moved to another directory meanwhile
                        if self._due.get(key) == directory.id:
                            del self._due[key]
                            self._settle(key, code == ErrorCode.NONE)
        return settled == len(told)

    def _settle(self, key: Key, agreed: bool) -> None:
        future = self._waiting.pop(key, None)
        if future is not None and not future.done():
            future.set_result(agreed)


def _directories(told: dict[Key, bytes]) -> list[_Directory]:
    found: dict[bytes, dict[bytes, list[_Topic.PartitionData]]] = {}
    for (topic_id, index), directory_id in told.items():
        partition = _Topic.PartitionData(partition_index=index)
        found.setdefault(directory_id, {}).setdefault(topic_id, []).append(partition)
    return [
        _Directory(
            id=directory_id,
            topics=[_Topic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()],
        )
        for directory_id, topics in found.items()
    ]
