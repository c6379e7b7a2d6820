"""Brokers: their disks and settings, the metadata quorum, moves of replicas, balancing, leaders, features."""
