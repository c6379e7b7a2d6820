"""Regular expressions that strangers send."""

# A regular expression that strangers send: how deeply it nests, the steps of its program (making one takes some 40 ms),
# the states and ways between them that are remembered (some MB), the work of one search over all names (steps that are
# looked at, about a second's worth, in slices of some milliseconds), and how many programs are kept.
REGEX_DEPTH_MAX = 100
REGEX_STEPS_MAX = 20_000
REGEX_MEMORY_MAX = 50_000
REGEX_WORK_MAX = 2_000_000
REGEX_WORK_PER_STEP = 10_000
REGEX_PATTERNS_MAX = 100
