"""Committed offsets of groups: commit, fetch, deletion and expiry."""
