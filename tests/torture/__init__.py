"""One real node with default settings, tortured: see `run`."""
