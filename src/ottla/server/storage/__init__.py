"""Partitions on disk: data directories, recovery, syncing, cleaning, removal."""
