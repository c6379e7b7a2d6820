"""What `ottla up` starts beside its nodes: the schema registry and the console, each a process of its own."""
