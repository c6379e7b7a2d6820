"""Shared parts of tests: a real Kafka, Java harnesses, Kafka's message definitions. The product
imports none of them.
"""
