"""Records of the internal topics, control records, and blobs inside other messages; they are declared like messages."""
