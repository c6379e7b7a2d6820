"""The settings of a client metrics subscription (KIP-714)."""

from typing import Any, Final

from ottla.model.section import Section
from ottla.model.setting import Setting
from ottla.model.validators import Items

client_metrics = Section(
    "Client metrics",
    "Set per subscription: which clients push which metrics, and how often. On nodes that tell metrics.",
)

METRICS = client_metrics.items("metrics", (), "Prefixes of the metrics that clients push; * means all.", valid=Items())
INTERVAL_MS = client_metrics.int32("interval.ms", 300_000, "How often clients push their metrics.")
MATCH = client_metrics.items(
    "match", (), "Which clients: selector=pattern,... over what they say about themselves.", valid=Items()
)

CLIENT_METRICS_SETTINGS: Final[dict[str, Setting[Any]]] = client_metrics.settings
