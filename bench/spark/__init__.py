"""Spark jobs on the source and sink `ottla` beside the same jobs on Spark's own connector."""
