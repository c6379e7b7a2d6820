"""Every setting of a broker, by name: Kafka 4.3.1's and our own.

The declarations live in `ottla.model.settings.*`, one module per concern; read them through their constants.
"""

from typing import Any, Final

from ottla.model.section import Section, merged
from ottla.model.setting import Setting
from ottla.model.settings.authorizer import authorizer
from ottla.model.settings.cleaner import cleaner
from ottla.model.settings.controller import controller
from ottla.model.settings.groups import groups
from ottla.model.settings.log import log
from ottla.model.settings.metrics import metrics
from ottla.model.settings.network import network
from ottla.model.settings.node import node
from ottla.model.settings.own import own
from ottla.model.settings.replication import replication
from ottla.model.settings.sasl import sasl
from ottla.model.settings.security import security
from ottla.model.settings.share import share
from ottla.model.settings.tenants import tenants
from ottla.model.settings.tiered import tiered
from ottla.model.settings.topic_policy import topic_policy
from ottla.model.settings.transactions import transactions

# In the order the documentation shows them.
BROKER_SECTIONS: Final[tuple[Section, ...]] = (
    node,
    network,
    log,
    cleaner,
    own,
    tenants,
    topic_policy,
    replication,
    controller,
    groups,
    share,
    transactions,
    authorizer,
    security,
    sasl,
    metrics,
    tiered,
)

BROKER_SETTINGS: Final[dict[str, Setting[Any]]] = merged(BROKER_SECTIONS)
