"""SQL over topics without a JVM: DuckDB on Arrow batches."""
