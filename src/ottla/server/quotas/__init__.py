"""Client quotas: what clients may use of this node, and how those that use more are slowed down."""
