"""What can be asked of the cluster: one module per command, each deciding on a `View` of the state."""
