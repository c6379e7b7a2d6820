"""Simulations of clusters: several real nodes, faults between them, and what must be true of them at every step."""
