"""The registered schemas: a machine over the records of the topic `_schemas`, in Confluent's JSON.

`records.py` is the format, `state.py` the state that the records produce, `commands.py` the possible changes,
`machine.py` the machine, `names.py` the syntax of subjects and contexts.
"""
