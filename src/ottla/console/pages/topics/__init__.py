"""Topics: the list, and the parts of one topic that are not its records."""
