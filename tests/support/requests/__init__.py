"""Requests made by hand, over a bare connection, so that a test decides every byte."""
