"""Client quotas without I/O: whose quota counts, measured rates, and how long a client over its quota has to wait."""
