"""Kafka's protocol: messages declared once, codecs generated on first use."""
