"""Commands that run nodes: `ottla up`, `ottla start`, `ottla format`; local clusters and their processes."""
