"""`ottla plan`: how many brokers, disks and partitions a load needs, with the arithmetic."""
