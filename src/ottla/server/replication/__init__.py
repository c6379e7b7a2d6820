"""Replication: fetching as a follower, and the leader's part for its followers."""
