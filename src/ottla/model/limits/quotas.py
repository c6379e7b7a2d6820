"""Client quotas, tenants, and fairness between clients."""

# Users, client ids or addresses whose rates are measured for one kind of quota; clients choose their client ids freely.
QUOTA_SENSORS_MAX = 10_000
# A rate that was not used for this long is forgotten, as with Kafka.
QUOTA_SENSOR_IDLE_MS = 3_600_000
# How often it is checked whether a client that has to wait, and is not read meanwhile, has disconnected.
MUTED_LOOK_S = 5
# Connections of addresses over their quota that are kept open, unread, until their wait is over; each has a descriptor.
# More of them are closed at once.
REFUSED_CONNECTIONS_HELD_MAX = 1_000
# Characters of a tenant's name: the names of its topics, of at most 249 characters, begin with it.
TENANT_NAME_CHARS_MAX = 100
# How often a broker measures the partitions of tenants that it leads: it writes at most this long beyond a limit.
TENANT_MEASURE_MS = 1_000
# How often a broker asks the others for the size of the partitions that they lead.
TENANT_ASK_MS = 10_000
# Partitions in one such question.
TENANT_PARTITIONS_PER_QUESTION = 5_000
