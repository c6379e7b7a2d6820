"""Messages about groups and their offsets."""
