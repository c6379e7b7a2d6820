"""`ottla doctor`: what is wrong with a cluster, a configuration or a data directory, why it matters, what to type."""
