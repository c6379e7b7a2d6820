"""Fetch: sessions, what is read for consumers, followers and share groups."""
