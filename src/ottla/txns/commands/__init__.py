"""The commands of the transaction coordinator, one module per command."""
