"""Handlers of APIs about records: produce, fetch, and related look-ups."""
