"""Group coordination: the group coordinators, and their requests to other parts of the node."""
