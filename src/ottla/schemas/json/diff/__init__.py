"""The differences between two JSON schemas, and whether all values that were valid before still are."""
