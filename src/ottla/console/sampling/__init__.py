"""The history of a cluster for charts: samples over some minutes, taken while somebody looks, and what changed."""
