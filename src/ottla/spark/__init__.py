"""Spark and the log as one system: the data source `ottla`, and the vocabulary of stream processing on DataFrames."""
