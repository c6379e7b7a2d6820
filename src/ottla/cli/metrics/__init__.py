"""The metrics of running nodes, for commands that show them or pack them up."""
