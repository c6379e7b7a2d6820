"""`ottla security`: what is open in a cluster or in a configuration."""
