"""Writing rows of Spark to topics.

`schema` says which rows can be written, `columns` and `rows` send them, `settings` holds what the options mean. The
rest is the exactly-once protocol (docs/exactly-once.md): `protocol` decides, `log` remembers, `transactions` acts,
`driver` is one side of it and `task` the other.
"""
