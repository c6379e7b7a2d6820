"""Reads data directories without a running node: dump and verify."""
