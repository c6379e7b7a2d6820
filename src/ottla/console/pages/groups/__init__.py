"""Groups of every kind: who reads what, how far behind, why; resetting and deleting their offsets."""
