"""Handlers of APIs about authentication, access control, credentials and quotas."""
