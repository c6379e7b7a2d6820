"""`ottla cluster`: status, moves of replicas, balancing, brokers that come and go, the metadata quorum."""
