"""A group as it is shown: its members, offsets and lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.admin import Admin


async def described_group(admin: Admin, group: str) -> dict[str, Any]:
    """A group as JSON; the lag of a share group counts the unfinished records."""
    described = await admin.groups.describe(group)
    owners = {each: member.member_id for member in described.members for each in member.partitions}
    partitions: list[dict[str, Any]]
    if described.kind == "share":
        places = await admin.shares.places(group)
        partitions = [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "start": each.start,
                "lag": each.lag,
                "members": [one.member_id for one in described.members if each.partition in one.partitions],
            }
            for each in places
        ]
    else:
        partitions = [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "committed": each.committed,
                "end": each.end,
                "lag": each.records,
                "lag_seconds": None if each.seconds is None else round(each.seconds, 3),
                "member": owners.get(each.partition),
            }
            for each in await admin.groups.lag(group, owners)
        ]
    return {
        "group": group,
        "type": described.kind,
        "state": described.state,
        "epoch": described.epoch,
        "assignor": described.assignor,
        "members": [
            {
                "member": each.member_id,
                "instance": each.instance_id,
                "client": each.client_id,
                "host": each.host,
                "partitions": [f"{at.topic}-{at.partition}" for at in each.partitions],
            }
            for each in described.members
        ],
        "partitions": partitions,
    }


async def check_empty(admin: Admin, group: str) -> None:
    """Raise CommandError if a group has members: brokers change no offsets of such a group. One that does not exist yet
    has none.
    """
    try:
        count = len((await admin.groups.describe(group)).members)
    except ApiError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if count:
        members = "a member" if count == 1 else f"{count} members"
        raise CommandError(
            f"group {group} has {members}: its offsets cannot be changed",
            f"stop its consumers first; `ottla group describe {group}` lists them",
        )


async def is_share_group(admin: Admin, group: str) -> bool:
    """Whether a group is a share group."""
    listed = await admin.groups.all_each()
    return any(each.group_id == group and each.kind == "share" for found in listed.found.values() for each in found)
