"""Look for what is wrong with a cluster, a configuration file or data directories, as `ottla doctor` shows it."""
