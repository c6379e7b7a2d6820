"""SASL: the exchanges of each mechanism, for the server's side and the client's side, and JAAS configurations."""
