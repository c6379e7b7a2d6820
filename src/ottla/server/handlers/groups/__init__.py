"""Handlers of APIs about groups and their offsets."""
