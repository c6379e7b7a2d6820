"""Delivery of records to share groups: which member has acquired which record, and its outcome. Pure."""
