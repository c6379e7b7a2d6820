"""The catalogue: every metric of a node, by area."""
