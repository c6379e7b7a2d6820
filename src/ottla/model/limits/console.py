"""The console."""

from ottla.model.limits.units import KIB, MIB

# Signed-in users at a time; the one that was idle longest is signed out for a new one. Each has connections of its own.
CONSOLE_SESSIONS_MAX = 200
# After how long without a request a session ends, and how long it may last at all.
CONSOLE_SESSION_IDLE_S = 3_600
CONSOLE_SESSION_S = 12 * 3_600
# Attempts to sign in that are under way at a time; others are told to try again.
CONSOLE_SIGN_INS_AT_ONCE_MAX = 16
# Messages to a user that wait for the next page.
CONSOLE_MESSAGES_MAX = 5
# Bytes of a form: a record to produce, or a schema.
CONSOLE_FORM_BYTES_MAX = 2 * MIB
# Requests that the console works on at a time, for all users, and for one of them.
CONSOLE_REQUESTS_AT_ONCE_MAX = 256
CONSOLE_REQUESTS_PER_SESSION_MAX = 32
# How long a page may take; a search, which shows its progress, may take longer.
CONSOLE_PAGE_S = 30
CONSOLE_STREAM_S = 600
# Rows of a table on one page.
CONSOLE_ROWS = 50
CONSOLE_ROWS_MAX = 500
# Characters of a key, value or header in a table, and bytes of one on a page of its own.
CONSOLE_CELL_CHARS = 200
CONSOLE_VALUE_BYTES_MAX = 256 * KIB
