"""What consumer, share and streams groups have in common: epochs, target assignments, and when they change.

A group has an epoch that grows whenever the question "who shall own what" changes: a member came, left or reads other
topics, or the topics themselves changed. The answer, the target assignment, is computed for an epoch and is written
down. Each member then moves from what it owns to what it shall own at its own pace, heartbeat by heartbeat.
"""
