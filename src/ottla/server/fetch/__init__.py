"""Fetch: reading records for consumers, followers and share groups; fetch sessions."""
