"""Payloads as typed Arrow columns and back: Avro, JSON and Protobuf by schema, with loops compiled by numba."""
