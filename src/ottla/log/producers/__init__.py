"""The state of a partition's idempotent and transactional producers."""
