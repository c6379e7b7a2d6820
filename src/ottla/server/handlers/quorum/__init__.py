"""Handlers of APIs about the metadata quorum."""
