"""Samples of a running cluster, and the rates between two of them."""
