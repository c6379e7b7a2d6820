"""Pipelines: files that define streams and queries, which are checked, run, watched and stopped together."""
