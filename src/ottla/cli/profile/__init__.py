"""Profiles: how the commands reach a cluster, by name; `ottla profile`."""
