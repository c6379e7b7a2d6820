"""The identity of a consumer in its group, which a transactional producer needs to commit that consumer's offsets."""

from typing import NamedTuple


class GroupMetadata(NamedTuple):
    """A member at one generation (classic protocol) or member epoch (KIP-848); -1 and "" outside any group."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
