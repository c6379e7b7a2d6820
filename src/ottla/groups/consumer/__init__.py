"""Consumer groups (KIP-848): the coordinator assigns, members reconcile step by step, nobody stops for the others.

Start reading at `heartbeat.py`; what a member goes through is in `reconcile.py`.
"""
