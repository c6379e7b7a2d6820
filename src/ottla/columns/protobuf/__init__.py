"""Protobuf payloads as columns and back.

A message becomes tables of its fields (`plan.py`); one loop, compiled once for all messages, reads by them (`run.py`).
"""
