"""Tiered storage (KIP-405): older segments of a topic in an object store, and what is known about them."""
