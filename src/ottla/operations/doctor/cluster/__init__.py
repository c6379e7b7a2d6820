"""Checks of a running cluster, by what its APIs tell."""
