"""The benchmark: Ottla and Apache Kafka 4.3.1 on one machine, with the same clients, in one run; figures are ratios."""
