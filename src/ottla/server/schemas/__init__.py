"""Contracts: records checked against registered schemas when they are appended."""
