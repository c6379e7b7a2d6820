"""Contracts: records are checked against registered schemas when they are appended."""
