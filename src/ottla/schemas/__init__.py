"""Schemas and the registry's state, pure: what a schema means (`avro/`, `json/`, `protobuf/`), what is registered
(`registry/`), and how a payload names its schema (`framing.py`). No sockets, no files, no clock."""
