"""Observability of a node: log set-up."""
