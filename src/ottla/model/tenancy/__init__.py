"""Tenants, rules for topics, and the settings that both consist of."""
