"""A cluster at a glance, and the moves of its replicas: plan them, throttle them, carry them out."""
