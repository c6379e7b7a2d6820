"""All coordinators of a node: groups, share state and transactions, composed when they are first needed."""
