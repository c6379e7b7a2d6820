"""The outside world of a node: disks, sockets, time, threads."""
