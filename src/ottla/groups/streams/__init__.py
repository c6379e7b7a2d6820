"""Streams groups (KIP-1071): the members of a Kafka Streams application share the tasks of one topology.

A task is a subtopology and a partition. The first member sends the topology; the coordinator computes how many
partitions its internal topics need, has them created, and assigns the tasks: each active task to exactly one member,
and as many standby copies as the group is configured for, each in another process.
"""
