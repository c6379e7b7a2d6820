"""What the transaction coordinator is asked to do, one module per command."""
