"""Every bound of the system, by name, each with its reason: one module per topic.

Rules:
- No queue, batch, session table, cache or retry without a bound from here (or from a setting whose default is here).
- A bound that operators may want to move is a setting; the constant is then its default or its ceiling.
- Units last: `_BYTES`, `_MS`, `_COUNT` (plural nouns count themselves).
- Bounds are read from this package (`limits.WAITERS_MAX`), never from its modules: if a test replaces one, all of the
  code sees it.
"""

# ruff: noqa: F403

from ottla.model.limits.batches import *
from ottla.model.limits.client import *
from ottla.model.limits.connections import *
from ottla.model.limits.console import *
from ottla.model.limits.coordinators import *
from ottla.model.limits.fetch import *
from ottla.model.limits.http import *
from ottla.model.limits.nodes import *
from ottla.model.limits.object_stores import *
from ottla.model.limits.observation import *
from ottla.model.limits.producers import *
from ottla.model.limits.quotas import *
from ottla.model.limits.raft import *
from ottla.model.limits.regex import *
from ottla.model.limits.registry import *
from ottla.model.limits.replication import *
from ottla.model.limits.requests import *
from ottla.model.limits.schemas import *
from ottla.model.limits.security import *
from ottla.model.limits.share_groups import *
from ottla.model.limits.spark import *
from ottla.model.limits.storage import *
from ottla.model.limits.telemetry import *
from ottla.model.limits.units import *
from ottla.model.limits.wire import *
