"""What a partition knows of its idempotent and transactional producers."""
