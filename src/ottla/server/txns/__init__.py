"""Transactions: coordinators, markers, and the check whether a batch may join its transaction."""
