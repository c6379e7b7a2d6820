"""Handlers of APIs about records: produce, fetch and what is known of them."""
