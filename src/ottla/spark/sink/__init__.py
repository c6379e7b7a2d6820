"""Writing rows of Spark to topics.

`schema` says which rows can be written, `columns` and `rows` send them, `settings` holds what the options mean. The
rest is the exactly-once protocol (docs/exactly-once.md): `protocol` decides, `log` remembers, `transactions` acts,
`checkpoint` tells what Spark has planned, `driver` is one side of it and `task` the other.
"""
