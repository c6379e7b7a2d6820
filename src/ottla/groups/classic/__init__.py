"""Groups whose members assign partitions themselves: the leader does, the coordinator only gathers and hands out.

The coordinator does not care what the members' metadata and assignments mean, so eager and cooperative consumers,
Connect's workers and anything else that speaks JoinGroup and SyncGroup are the same to it.
"""
