"""Share groups (KIP-932): members that read the same partitions together, record by record.

Partitions are assigned as in other modern groups, except that a partition may have many readers. So no revocation is
needed before another member gets it, and a member is always stable. Before a partition is assigned, its state is
initialised at the share coordinator; the group's `StatePartitionMetadata` record keeps track of that.
"""
