"""Messages about authentication, authorization and quotas."""
