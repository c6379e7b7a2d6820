"""`ottla acl`: access control entries."""
