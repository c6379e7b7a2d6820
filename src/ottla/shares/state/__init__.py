"""The stored state of share partitions. Pure: the machine of one partition of `__share_group_state`."""
