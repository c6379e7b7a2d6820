"""Transactions: which are open, what they hold back, which hang; aborting them."""
