"""`ottla log`: look into data directories without a running node."""
