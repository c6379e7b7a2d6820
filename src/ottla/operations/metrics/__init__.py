"""The metrics of running nodes, for whoever shows them or packs them up."""
