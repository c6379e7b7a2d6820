"""Metrics: what a node can be asked about itself, declared once, and Prometheus' format of the answers."""
