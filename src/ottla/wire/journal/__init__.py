"""The records of the internal logs, one module per log."""
