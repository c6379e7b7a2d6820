"""What handlers of security APIs share: ACLs, SASL conversations, delegation tokens, forwarded principals."""
