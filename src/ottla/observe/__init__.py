"""Observability of a node: log set-up, and what its metrics are."""
