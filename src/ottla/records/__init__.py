"""Record batches (magic 2): header view and stamping, record iteration, building, codecs, control records.

Rules:
- The hot path (`batch`) never looks inside a batch: it reads 61 bytes, checks the CRC in C, and stamps in place.
- Everything that does look inside (`record`, `build`, `compress`) is bounded by `model.limits`.
"""
