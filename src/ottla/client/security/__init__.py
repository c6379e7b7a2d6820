"""The security of the client's connections: TLS and SASL, with the names of Kafka's settings."""
