"""`ottla tenant`: parts of a cluster for different people."""
