"""Who may do what, and how much: users, access rules, quotas, tenants, tokens, the audit log, and what is open."""
