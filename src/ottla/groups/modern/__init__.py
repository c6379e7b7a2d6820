"""The common parts of consumer, share and streams groups: epochs, target assignments, and when they change.

A group's epoch grows whenever its assignment may have to change: a member joined, left or changed its subscription, or
the topics changed. The target assignment is computed for an epoch and written to the journal. Each member then moves
from its current assignment to its target at its own pace, heartbeat by heartbeat.
"""
