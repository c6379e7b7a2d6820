"""The ottla command, one module per noun."""
