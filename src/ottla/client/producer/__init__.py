"""Writing: the producer, its batches, its sender, transactions."""
