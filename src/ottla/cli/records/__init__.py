"""`ottla produce` and `ottla consume`: records as text."""
