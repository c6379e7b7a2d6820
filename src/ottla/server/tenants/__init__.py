"""Limits of tenants on this node."""
