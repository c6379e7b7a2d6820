"""Opening a partition directory after a crash, and what proves that none happened."""
