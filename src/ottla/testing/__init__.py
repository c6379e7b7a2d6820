"""The pytest plugin: a real broker inside the test process."""
