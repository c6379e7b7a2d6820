"""Group coordination: the group coordinators, and what groups ask of the rest of the node."""
