"""Who may use the registry: authentication of HTTP clients, rights on subjects by the cluster's ACLs, trust among
instances, HTTPS.
"""
