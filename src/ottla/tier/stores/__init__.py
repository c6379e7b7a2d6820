"""Object stores behind one port (`port.py`): S3, Google Cloud Storage, Azure, a directory (ADR 0056)."""
