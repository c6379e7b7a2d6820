"""What is registered: a machine over the records of the topic `_schemas`, in Confluent's JSON.

`records.py` is the format, `state.py` what the records add up to, `commands/` what may be asked for, `machine.py` the
whole, `names.py` how subjects and contexts are written.
"""
