"""Look for what is open in a cluster or in a configuration, as `ottla security audit` shows it."""
