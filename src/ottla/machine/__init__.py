"""The kit for replicated state machines: a machine decides, its records are appended, and the machine applies them."""
