"""Breaking real clusters: faults on three real nodes while verified clients work; `python -m tests.chaos --help`."""
