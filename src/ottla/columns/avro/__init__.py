"""Avro payloads as columns and back.

A schema becomes a small program (`program.py`); one loop, compiled once for all schemas, runs it over all values
(`run.py`). So a new schema costs microseconds, not a compilation.
"""
