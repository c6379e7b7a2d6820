"""The resources of the registry's REST API, one module each. A handler turns a request into a command or lookup, and
its result into JSON. `table.py` finds the handler of a request.
"""
