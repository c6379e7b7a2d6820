"""Regular expressions that clients send."""

# A regular expression that a client sends: its characters and nesting depth, the steps of its program (compiling the
# largest takes some 40 ms), the states and transitions that are cached (13 MB), and the work of one search over all
# names (steps executed, about a second's worth, in slices of some milliseconds).
REGEX_CHARS_MAX = 8_192
REGEX_DEPTH_MAX = 100
REGEX_STEPS_MAX = 20_000
REGEX_MEMORY_MAX = 50_000
REGEX_WORK_MAX = 2_000_000
REGEX_WORK_PER_STEP = 10_000
# Compiled programs that are cached, and their characters, steps, states and transitions, at some 270 bytes each: 54 MB.
REGEX_PATTERNS_MAX = 100
REGEX_CACHE_MAX = 200_000
