"""The commands of the cluster machine: one module per command, each deciding on a `View` of the state."""
