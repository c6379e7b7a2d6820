"""The schema registry: Confluent's REST API over the compacted topic `_schemas`."""
