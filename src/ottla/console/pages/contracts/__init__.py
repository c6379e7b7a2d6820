"""Contracts: topics whose records the brokers check against schemas; what they check, refused, and changing it."""
