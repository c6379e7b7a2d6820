"""The benchmark: Ottla and a real Kafka 4.3.1 on one machine, the same clients, one run, figures as ratios."""
