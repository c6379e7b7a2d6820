"""Simulations of clusters: several real nodes, faults between them, and the invariants of every step."""
