"""Schemas: subjects and their versions, what two of them differ in, checking and registering, levels, deleting.

All calls of the registry's client are blocking, and run in a thread.
"""
