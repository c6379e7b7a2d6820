"""Ottla: a Kafka-compatible distributed log in Python."""

__version__ = "0.1.0"
