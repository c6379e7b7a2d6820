"""The settings of a running node."""
