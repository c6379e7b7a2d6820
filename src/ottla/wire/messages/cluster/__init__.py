"""Messages about the cluster's brokers and controllers."""
