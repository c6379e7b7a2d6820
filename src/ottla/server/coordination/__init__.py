"""The runtime of coordinators of every kind: machines on the partitions of an internal topic."""
