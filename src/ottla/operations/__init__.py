"""What operators see and do with a running cluster, for the command line and the console: without a terminal."""
