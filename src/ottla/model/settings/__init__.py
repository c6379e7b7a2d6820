"""The settings of a broker, one module per concern; `ottla.model.broker_settings` has those of a broker by name."""
