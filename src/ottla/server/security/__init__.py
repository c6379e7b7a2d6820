"""The security of a node's listeners: TLS contexts, SASL authentication, credentials, access rules."""
