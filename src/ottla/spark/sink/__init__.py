"""Writing rows of Spark to topics.

`schema` checks which rows can be written, `columns` and `rows` send them, `settings` parses the options. The other
modules are the exactly-once protocol (docs/exactly-once.md): `protocol` makes the decisions, `log` stores them,
`transactions` ends transactions, `checkpoint` reads what Spark has planned, `driver` is the driver's side and `task`
the tasks'.
"""
