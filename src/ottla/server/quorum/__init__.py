"""The metadata quorum on this node: consensus, the cluster's state, the active controller, membership."""
