"""A schema registry, a producer that registers schemas, and consumers that decode with them: a part of a run
(`workload`).
"""
