"""Handlers of APIs about the cluster's brokers and controllers."""
