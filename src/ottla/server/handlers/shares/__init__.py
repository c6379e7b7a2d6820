"""Handlers of APIs about share groups."""
