"""Group coordination: what the handlers of group APIs share."""
