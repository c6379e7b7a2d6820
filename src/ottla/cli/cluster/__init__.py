"""`ottla cluster`: status, moves of replicas, balancing, adding and removing brokers, the metadata quorum."""
