"""Consumer groups (KIP-848): the coordinator assigns, members reconcile step by step, without stopping each other.

Start reading at `heartbeat.py`; the states of a member are in `reconcile.py`.
"""
