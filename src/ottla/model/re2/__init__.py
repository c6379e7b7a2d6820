"""Regular expressions in RE2's syntax and with RE2's promise: the time to match is bounded.

Kafka matches with RE2/J what strangers send: the expressions that members subscribe to, and the patterns of
transactional ids that admins list. Python's `re` has another syntax (backreferences, lookaround, other escapes and
classes) and can take exponential time, so it can serve neither for what a client means nor for what it may cost us.
This package parses RE2's syntax itself and runs a set of states over the text, one step per character. Only whole texts
are matched, so greediness and captures do not matter. A character is a code point; a class of them is a test of one.
"""
