"""Cluster state: applied metadata records, and the commands that produce them."""
