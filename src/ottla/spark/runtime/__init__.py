"""Spark sessions: Java, Spark's own settings, Python workers."""
