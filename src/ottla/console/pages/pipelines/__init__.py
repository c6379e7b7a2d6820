"""Spark pipelines, as their runs tell it in the status topic: state, rates, lag, errors; to stop and restart them."""
