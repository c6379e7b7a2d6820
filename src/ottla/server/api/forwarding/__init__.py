"""Forwarding: how a node that is not the active controller has it handle the requests of clients (KIP-590)."""
