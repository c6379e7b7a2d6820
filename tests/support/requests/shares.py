"""A share group in comparisons: heartbeats of its members and admin requests, on one side."""

from collections.abc import Callable

from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.shares.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.messages.shares.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.shares.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from ottla.wire.messages.shares.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

GROUP = 0
SHARE = 2
GROUP_CONFIG = 32
SET = 0
LEAVE = -1
SOME_TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
NOT_READY = (14, 15, 16)


class ShareTalk:
    """Sends requests to one side, as one share group."""

    def __init__(self, side: Side, name: str, **configs: str) -> None:
        self.side = side
        self.name = name
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[name])
        until(lambda: side.call(request, 6), lambda found: found["coordinators"][0]["error_code"] == 0)
        until(self.describe, lambda found: found["groups"][0]["error_code"] not in NOT_READY)
        # The first request of this kind makes a new Kafka create the share state topic; without the topic a member
        # waits.
        state = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[f"{name}:{SOME_TOPIC}:0"])
        until(lambda: side.call(state, 6), lambda found: found["coordinators"][0]["error_code"] == 0)
        self.configure(**{"share.assignment.interval.ms": "0", **configs})

    def configure(self, **configs: str) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        changes = [
            resource.AlterableConfig(name=name, config_operation=SET, value=value) for name, value in configs.items()
        ]
        about = resource(resource_type=GROUP_CONFIG, resource_name=self.name, configs=changes)
        answer = self.side.call(IncrementalAlterConfigsRequest(resources=[about], validate_only=False), 1)
        assert answer["responses"][0]["error_code"] == 0, answer
        self.side.settle()

    def beat(self, member: str, epoch: int, *topics: str, **fields: object) -> Plain:
        """Send a heartbeat; without topics the subscription stays the same."""
        request = ShareGroupHeartbeatRequest(
            **{
                "group_id": self.name,
                "member_id": member,
                "member_epoch": epoch,
                "subscribed_topic_names": list(topics) or None,
                **fields,
            }
        )
        return self.side.call(request, 1)

    def join(self, member: str, *topics: str) -> Plain:
        """Send heartbeats until the member has partitions."""
        answer = self.beat(member, 0, *topics)
        return self.stay(member, answer, lambda found: bool(found["assignment"]["topic_partitions"]))

    def stay(self, member: str, answer: Plain, holds: Callable[[Plain], bool]) -> Plain:
        """Send heartbeats until the assignment is as expected; the last answer with an assignment."""
        last = answer

        def is_told(found: Plain) -> bool:
            nonlocal last
            last = found
            assert found["error_code"] == 0, found
            return found["assignment"] is not None and holds(found)

        return answer if is_told(answer) else until(lambda: self.beat(member, last["member_epoch"]), is_told)

    def describe(self, **fields: object) -> Plain:
        request = {"group_ids": [self.name], "include_authorized_operations": False, **fields}
        return self.side.call(ShareGroupDescribeRequest(**request), 1)

    def offsets(self, topics: dict[str, list[int]] | None = None, version: int = 1) -> Plain:
        asked = DescribeShareGroupOffsetsRequest.Group
        named = None
        if topics is not None:
            named = [asked.Topic(topic_name=name, partitions=indexes) for name, indexes in topics.items()]
        request = DescribeShareGroupOffsetsRequest(groups=[asked(group_id=self.name, topics=named)])
        return self.side.call(request, version)

    def alter(self, topics: dict[str, dict[int, int]]) -> Plain:
        asked = AlterShareGroupOffsetsRequest.Topic
        named = [
            asked(
                topic_name=name,
                partitions=[asked.Partition(partition_index=at, start_offset=start) for at, start in each.items()],
            )
            for name, each in topics.items()
        ]
        request = AlterShareGroupOffsetsRequest(group_id=self.name, topics=named)
        return until(
            lambda: self.side.call(request, 0),
            lambda found: (
                not any(each["error_code"] in NOT_READY for topic in found["responses"] for each in topic["partitions"])
            ),
        )

    def delete_offsets(self, *topics: str) -> Plain:
        asked = DeleteShareGroupOffsetsRequest.Topic
        request = DeleteShareGroupOffsetsRequest(group_id=self.name, topics=[asked(topic_name=name) for name in topics])
        return self.side.call(request, 0)

    def delete(self) -> Plain:
        return self.side.call(DeleteGroupsRequest(groups_names=[self.name]), 2)

    def listed(self) -> Plain:
        answer = self.side.call(ListGroupsRequest(states_filter=[], types_filter=["share"]), 5)
        return [group for group in answer["groups"] if group["group_id"] == self.name]
