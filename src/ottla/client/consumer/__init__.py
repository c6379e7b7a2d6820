"""Reading: the consumer, its positions and commits, range reads, Arrow."""
