"""The requests of one client, seen while somebody asks for them."""
