"""Functions for stream processing on DataFrames."""
