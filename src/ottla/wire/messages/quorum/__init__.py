"""Messages about the metadata quorum."""
