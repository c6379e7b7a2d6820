"""The lag of groups: how far they have read, what is unread, and what of it is told."""
