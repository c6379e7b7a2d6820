"""The ottla command, one module per noun; `app` puts them together, `start` is what supervisors run."""
