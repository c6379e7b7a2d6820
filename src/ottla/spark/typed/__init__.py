"""Typed columns: keys and values decoded and encoded by their schemas."""
