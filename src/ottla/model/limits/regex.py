"""Regular expressions that clients send."""

# A regular expression that a client sends: its nesting depth, the steps of its program (compiling them takes some 40
# ms), the states and transitions that are cached (some MB), the work of one search over all names (steps executed,
# about a second's worth, in slices of some milliseconds), and how many compiled programs are cached.
REGEX_DEPTH_MAX = 100
REGEX_STEPS_MAX = 20_000
REGEX_MEMORY_MAX = 50_000
REGEX_WORK_MAX = 2_000_000
REGEX_WORK_PER_STEP = 10_000
REGEX_PATTERNS_MAX = 100
