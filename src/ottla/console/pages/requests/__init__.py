"""Requests: how many of which kind, how long they take, and which errors they end with."""
