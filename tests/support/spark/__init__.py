"""Real Sparks, and Spark's own functions in a JVM without a session."""
