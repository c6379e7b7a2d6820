"""Record batches (magic 2): header view and stamping, record iteration, building, codecs, control records.

Rules:
- The hot path (`batch`) never looks inside a batch: it reads 61 bytes, checks the CRC in C, and stamps in place.
- Modules that do look inside (`record`, `build`, `compress`) are bounded by `model.limits`.
"""
