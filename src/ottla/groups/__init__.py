"""The group coordinator's machine for one partition of `__consumer_offsets`: membership, assignments, committed
offsets. Pure.
"""
