"""Records of the internal topics, control records, and the blobs that travel inside other messages; declared like
messages."""
