"""Words every layer shares: ids, errors, limits, settings."""
