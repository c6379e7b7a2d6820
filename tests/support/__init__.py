"""What tests share: a real Kafka, Java harnesses, Kafka's message definitions. Nothing here is imported by the product."""
