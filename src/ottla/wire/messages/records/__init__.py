"""Messages about records: produce, fetch, offsets and producers."""
