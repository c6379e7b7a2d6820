"""The settings of a broker, one module per concern; `ottla.model.broker_settings` has all of them by name."""
