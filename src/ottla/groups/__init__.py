"""Groups: who consumes what, and how far they have come. Pure: the machine of one partition of `__consumer_offsets`."""
