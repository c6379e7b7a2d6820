"""Who reads what: the assignors of the classic protocol, as pure functions from subscriptions to assignments.

The group's leader runs one of them; which one, all members agree on by name. Names and results of `range` and
`roundrobin` are Java's; `sticky` and `cooperative-sticky` speak Java's formats and keep Java's promises (balance first,
then as little movement as possible) by an algorithm of their own. Racks are not looked at.

Rules:
- Every partition of a subscribed topic goes to exactly one member that subscribed to it; only the cooperative assignor
  holds back, for one round, what another member still owns.
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

# With these a member keeps what it owns while a rebalance is under way (KIP-429).
COOPERATIVE = ("cooperative-sticky",)

__all__ = ["ASSIGNORS", "COOPERATIVE", "Assignment", "Assignor", "SubscribedMember"]
