"""Telemetry that clients push to this node (KIP-714): subscriptions in effect, client instances, pushes."""
