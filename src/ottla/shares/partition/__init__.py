"""One share-partition: which records of a partition are acquired by members of a share group, and their outcomes."""
