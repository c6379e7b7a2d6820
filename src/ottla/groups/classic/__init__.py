"""Groups of the classic protocol: the leader assigns partitions; the coordinator only collects and distributes.

The coordinator does not interpret the members' metadata and assignments, so it treats eager and cooperative consumers,
Connect's workers and any other clients of JoinGroup and SyncGroup alike.
"""
