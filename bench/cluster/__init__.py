"""Three nodes of each kind against each other: `python -m bench.cluster`."""
