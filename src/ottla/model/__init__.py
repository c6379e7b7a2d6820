"""Definitions that all layers share: ids, errors, limits, settings."""
