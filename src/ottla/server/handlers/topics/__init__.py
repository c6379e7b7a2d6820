"""Handlers of APIs about topics, their partitions and configurations."""
