"""Schemas and the registry's state, pure: parsed schemas (`avro/`, `json/`, `protobuf/`), the registered schemas
(`registry/`), and how a payload names its schema (`framing.py`). No sockets, no files, no clock.
"""
