"""Data directories read without a node: dump and verify."""
