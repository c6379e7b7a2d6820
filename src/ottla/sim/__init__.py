"""The deterministic simulator: the same server and client on virtual time, network and disks."""
