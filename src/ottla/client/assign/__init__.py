"""The assignors of the classic group protocol, as pure functions from subscriptions to assignments.

The group's leader runs the assignor whose name all members support. Names and results of `range` and `roundrobin` are
those of Kafka's Java client; `sticky` and `cooperative-sticky` use its formats and keep its promises (balance first,
then as little movement as possible) with an algorithm of their own. Racks are ignored.

Rules:
- Every partition of a subscribed topic goes to exactly one member that subscribed to it; only the cooperative assignor
  leaves a partition unassigned, for one round, while another member still owns it.
- The result depends on the members and their subscriptions, never on the order in which they are given.
"""

from collections.abc import Callable, Mapping

from ottla.client.assign.cooperative import cooperative_sticky
from ottla.client.assign.members import Assignment, SubscribedMember
from ottla.client.assign.range import range_
from ottla.client.assign.roundrobin import roundrobin
from ottla.client.assign.sticky import sticky

Assignor = Callable[[Mapping[str, SubscribedMember], Mapping[str, int]], Assignment]

ASSIGNORS: dict[str, Assignor] = {
    "range": range_,
    "roundrobin": roundrobin,
    "sticky": sticky,
    "cooperative-sticky": cooperative_sticky,
}

# With these assignors a member keeps its partitions while a rebalance is under way (KIP-429).
COOPERATIVE = ("cooperative-sticky",)

__all__ = ["ASSIGNORS", "COOPERATIVE", "Assignment", "Assignor", "SubscribedMember"]
