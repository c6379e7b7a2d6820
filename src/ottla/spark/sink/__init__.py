"""Writing rows of Spark to topics.

`columns` says which rows can be written, `rows` sends them, `settings` holds what the options mean. The rest is the
exactly-once protocol (docs/exactly-once.md): `protocol` decides, `log` remembers, `transactions` acts, `driver` is one
side of it and `task` the other.
"""
