"""The resources of the registry's REST API, one module each. A handler translates: a request into a command or lookup,
what comes of it into JSON. `table.py` knows which handler a request is for."""
