"""The first page: is the cluster well, and what happens in it just now."""
