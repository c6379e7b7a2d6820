"""Share groups (KIP-932): members that read the same partitions together, record by record.

Who reads which partition is decided as in other modern groups, only that a partition may have many readers, so nobody
has to give anything back before others get it: a member is always stable. Before a partition is handed to anyone, its
state is initialised at the share coordinator; `StatePartitionMetadata` is the group's book of that.
"""
