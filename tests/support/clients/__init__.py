"""Kafka clients of every language behind one interface: with assigned partitions, in groups, in share groups."""
