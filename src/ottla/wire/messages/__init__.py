"""One module per API: its request and its response, all versions."""
