"""What changed from one JSON schema to another, and whether all that was valid before still is."""
