"""Connections and requests from this node to other nodes."""
