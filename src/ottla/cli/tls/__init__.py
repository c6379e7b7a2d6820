"""`ottla tls`: certificates for development, and a look at certificates."""
