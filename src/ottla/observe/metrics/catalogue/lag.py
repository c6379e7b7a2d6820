"""The lag of groups."""

from ottla.observe.metrics.declaration import Area

lag = Area(
    "Lag of groups",
    "Of the groups that this node coordinates, whatever their kind, also of Spark's queries; looked at every five "
    "seconds, beside the scrapes. Of the groups with most lag (`ottla.metrics.groups.max`) each is told; all others "
    "together are the group `(other)`. A share group lags by the records from its start offset on that are not "
    "finished, known from its first acknowledgement on; what members hold is told by the leaders of the partitions.",
)

GROUP_LAG = lag.gauge(
    "ottla_group_lag_records", "Records that the group has not read, over all its partitions.", "group", "kind"
)
GROUP_LAG_TIME = lag.gauge(
    "ottla_group_lag_seconds",
    "How long the oldest record that the group has not read has been there, to within its batch; 0 if all are read.",
    "group",
    "kind",
    unit="seconds",
)
PARTITION_LAG = lag.gauge(
    "ottla_group_partition_lag_records",
    "Records of a partition that the group has not read.",
    "group",
    "topic",
    "partition",
)
PARTITION_LAG_TIME = lag.gauge(
    "ottla_group_partition_lag_seconds",
    "How long the first of these has been there.",
    "group",
    "topic",
    "partition",
    unit="seconds",
)
UNKNOWN_LAGS = lag.gauge(
    "ottla_group_lag_unknown_partitions",
    "Partitions of groups whose lag is not known, because their leaders did not tell it or there are too many.",
)
LAG_AGE = lag.gauge("ottla_group_lag_age_seconds", "How old the lags are that are told.", unit="seconds")
IN_FLIGHT = lag.gauge(
    "ottla_share_group_in_flight_records",
    "Records of partitions led here that members of the group have acquired and not acknowledged.",
    "group",
)
ACQUIRED = lag.counter(
    "ottla_share_group_acquired_records_total",
    "Records of partitions led here that members acquired: deliveries, also repeated ones.",
    "group",
)
REDELIVERED = lag.counter("ottla_share_group_redelivered_records_total", "Of these: repeated ones.", "group")
ACKNOWLEDGED = lag.counter(
    "ottla_share_group_acknowledged_records_total", "Records that members accepted; those led here.", "group"
)
ARCHIVED = lag.counter(
    "ottla_share_group_archived_records_total",
    "Records that were given up, rejected or delivered too often; those led here.",
    "group",
)
