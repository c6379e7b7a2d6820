"""The server-side assignors: which member of a group shall read which partitions. Pure functions of a `GroupSpec`."""
