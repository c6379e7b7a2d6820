"""What requests change, for the audit log: names that several APIs declare, and the notes of them."""
