"""Messages about transactions."""
