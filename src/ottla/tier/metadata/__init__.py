"""What is known about segments in the remote tier: records, states, queries and decisions. Pure."""
