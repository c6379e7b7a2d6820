"""Share groups (KIP-932): live share partitions and their stored state."""
