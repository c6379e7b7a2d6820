"""One share-partition: which records of a partition a share group has out, and what became of them."""
