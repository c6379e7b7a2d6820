"""JSON payloads as columns and back, by JSON Schema.

Plain types are parsed by pyarrow, whole batches at once; a batch that it refuses, and types that it does not know
(maps, times, bytes), go row by row, so that only bad rows are bad.
"""
