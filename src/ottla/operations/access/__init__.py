"""Access control entries in words."""
