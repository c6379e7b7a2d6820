"""The simulated world: event loop, network, disks."""
