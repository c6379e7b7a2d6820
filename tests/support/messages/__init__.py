"""Kafka's message definitions, our classes for them, and the JSON form that Kafka's converters read."""
