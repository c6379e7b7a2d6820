"""Explanations: why a group is behind, why it rebalanced, why a topic is uneven; for the terminal and the console."""
