"""The kit every durable piece of control state is built from: decide, append, apply."""
