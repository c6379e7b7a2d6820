"""The vocabulary of stream processing on DataFrames."""
