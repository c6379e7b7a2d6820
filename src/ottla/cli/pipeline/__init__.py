"""`ottla pipeline`: check, run and stop pipelines on Spark."""
