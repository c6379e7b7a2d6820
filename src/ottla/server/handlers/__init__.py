"""One module per API; the file name is the API name."""
