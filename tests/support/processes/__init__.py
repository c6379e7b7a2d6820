"""Servers as processes: our node, a real Kafka, clusters of either, registries, a Connect worker, a PostgreSQL."""
