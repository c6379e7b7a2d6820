"""The audit log: what clients were allowed and refused, and where it is written."""
