"""Regular expressions over topic names, in RE2's syntax and with RE2's promise: the time to match is bounded.

Kafka matches subscribed expressions with RE2/J. Python's `re` has another syntax (backreferences, lookaround, other
escapes and classes) and can take exponential time, so it can serve neither for what a client means nor for what a
stranger may send. This package parses RE2's syntax itself and runs a set of states over the name, one step per
character. Only whole names are matched and only legal names exist, so a class of characters is a set of those 65, and
greediness, captures and Unicode beyond it do not matter.
"""
