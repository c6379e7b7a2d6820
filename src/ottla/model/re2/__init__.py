"""Regular expressions in RE2's syntax, with RE2's guarantee that the time to match is bounded.

Kafka uses RE2/J for patterns that clients send: the topic patterns that members subscribe to, and the patterns of
transactional ids that admins list. Python's `re` has another syntax (backreferences, lookaround, other escapes and
classes), so it would read such a pattern differently, and it can take exponential time.

This package parses RE2's syntax itself and runs a set of states over the text, one step per character. Only whole texts
are matched, so greediness and captures do not matter. A character is a code point; a character class is a test of one
character.
"""
