"""Object stores: sizes of what is sent and read in one piece, time, and calls at once."""

from ottla.model.limits.units import KIB, MIB

# One part of an object that is put in parts, and so the largest object that is sent in one request; S3 takes up to
# 10,000 parts of at least 5 MiB, so a segment of 2 GiB has 256.
STORE_PART_BYTES = 8 * MIB
STORE_PARTS_MAX = 10_000
# Parts of one object that are under way at once; with those that wait and are being read, a put holds 40 MiB.
STORE_PARTS_AT_ONCE = 3
# The most that one call reads of an object.
STORE_READ_BYTES_MAX = 16 * MIB
# A key, and a name in it, which is a file's: S3 and Azure take 1,024 characters, of which the store's prefix has 200.
STORE_KEY_BYTES_MAX = 800
STORE_KEY_PART_BYTES_MAX = 255
# Objects on one page of a listing; S3 lists as many in one request.
STORE_PAGE_OBJECTS = 1_000
# Objects that one request deletes: Azure takes 256, S3 1,000.
STORE_DELETED_AT_ONCE = 250
# Single deletions at once, after a request for many has failed because one of them is not there.
STORE_SINGLE_DELETIONS_AT_ONCE = 8
# Calls that read, calls that change, and puts in parts, at once: none waits for those of another kind. Puts in parts
# then hold 160 MiB at most.
STORE_READS_AT_ONCE = 16
STORE_CHANGES_AT_ONCE = 8
STORE_PUTS_IN_PARTS_AT_ONCE = 4
# Threads that work for a store which is a directory.
STORE_FILE_THREADS = 8
# One HTTP request: connecting, and the whole of it. Parts then have to travel at 280 KiB/s each.
STORE_CONNECT_S = 5
STORE_REQUEST_S = 30
# Repetitions of one request of a put in parts, and how long they may take: its other parts need not be sent again.
STORE_PART_RETRIES = 3
STORE_PART_RETRY_S = 20
# A call that had no answer (a put in parts: no part that was sent, and no end) for so long has failed.
STORE_TRY_S = 60
# A call that failed in a way that may pass is repeated for so long, after pauses that double between these bounds.
STORE_PATIENCE_S = 90
STORE_PAUSE_S = 0.1
STORE_PAUSE_S_MAX = 5
# Files of puts in a directory that a crash left behind are removed at this age: no put lasts that long.
STORE_UPLOAD_ABANDONED_S = 24 * 60 * 60
# How often a put in a directory makes the folders of its object again because a deletion has just removed them.
STORE_FOLDER_TRIES = 10
# Keys of an AWS profile are read from its file again after this time.
STORE_PROFILE_S = 300
# What is told of an error of a store: its beginning.
STORE_ERROR_CHARS_MAX = 400
# Secrets of the environment of at least this length are taken out of errors; shorter ones would blank out plain words.
STORE_SECRET_CHARS_MIN = 6
# Bytes of an error's text that are looked at.
STORE_ERROR_LOOKED_AT_BYTES = 16 * KIB
