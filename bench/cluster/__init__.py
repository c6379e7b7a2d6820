"""Clusters of three nodes compared, Ottla's and Kafka's: `python -m bench.cluster`."""
