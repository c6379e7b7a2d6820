"""The settings of a broker, one module per concern; `ottla.model.broker_settings` has them all by name."""
