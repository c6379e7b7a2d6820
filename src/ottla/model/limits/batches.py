"""Record batches: their sizes, and the work of looking inside them."""

from ottla.model.limits.units import KIB, MIB

# Default of message.max.bytes / max.message.bytes (1 MiB + the batch's 12-byte prefix).
BATCH_BYTES_MAX = 1 * MIB + 12
# The largest decompressed size of one batch: a guard against decompression bombs, far above what producers send.
DECOMPRESSED_BATCH_BYTES_MAX = 256 * MIB
# The largest compression ratio of any codec (zstd: a block of 128 KiB in four bytes), and the smallest record. A header
# that claims more records than these allow is false; each record would take an offset.
UNPACKED_RATIO_MAX = 32_768
RECORD_BYTES_MIN = 7
# Looks into the batches of one Produce (for compacted topics, and topics with a codec or a contract of their own): how
# much they may decompress to, or this many times their own size if that is more, and how many records they may have.
LOOKED_INTO_BYTES_MAX = 64 * MIB
LOOKED_INTO_RATIO_MAX = 8
LOOKED_INTO_RECORDS_MAX = 250_000
# Records and bytes that one search by time looks into (a second of CPU time; a batch counts as at least
# LOOKED_AT_ONCE_RECORDS). If headers are right, most searches look into one batch only.
SEARCHED_RECORDS_MAX = 1_000_000
SEARCHED_BYTES_MAX = 128 * MIB
# Markers and emptied batches that are passed over to find the next record, when only its time is asked for.
BATCHES_PASSED_OVER_MAX = 32
# Records that a worker looks at between two pauses (some 2 ms), and records whose payloads it checks between two
# pauses.
LOOKED_AT_ONCE_RECORDS = 1_000
CHECKED_AT_ONCE_RECORDS = 64
# Records below this average size are decoded for a look, which is quicker than skipping over them as long as there is
# little to copy.
LOOKED_AT_BY_COLUMN_BYTES = 1 * KIB
# Bytes that a worker compresses between two pauses.
PACKED_AT_ONCE_BYTES = 256 * KIB
# Looks into batches up to this decompressed size do not wait for looks into larger ones.
LOOKED_INTO_SOON_BYTES = 1 * MIB
# The largest batch, compressed and not, that is looked into on the event loop, where that costs less than a worker; the
# budget of such looks in one turn of the loop (some 10 ms); and the least that a record, and a decompression, count.
LOOKED_AT_ON_LOOP_PACKED_BYTES = 16 * KIB
LOOKED_AT_ON_LOOP_BYTES = 128 * KIB
LOOKED_AT_PER_TURN_BYTES = 512 * KIB
LOOKED_AT_RECORD_BYTES = 128
LOOKED_AT_UNPACKED_BYTES = 32 * KIB
# Up to this batch size an error names the records whose timestamps are too far ahead; for larger batches it names the
# header only.
DATED_BYTES_MAX = 2 * KIB
# Records decoded at once: enough to amortise the overhead, few enough that a hostile batch cannot fill the memory.
RECORDS_DECODED_AT_ONCE_MAX = 1_024
