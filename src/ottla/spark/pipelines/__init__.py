"""Pipelines: files of streams and queries, checked, run, watched and stopped as one."""
