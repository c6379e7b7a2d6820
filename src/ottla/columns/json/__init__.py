"""JSON payloads as columns and back, by JSON Schema: a compiled loop reads text, whole columns are written as text."""
