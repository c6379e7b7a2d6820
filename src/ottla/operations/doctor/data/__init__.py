"""Checks of a data directory, made from its files alone."""
