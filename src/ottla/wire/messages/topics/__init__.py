"""Messages about topics, their partitions and configurations."""
