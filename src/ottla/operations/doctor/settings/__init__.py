"""Checks of a node's settings, in a file or in a running cluster."""
