"""Record batches: their sizes, and what is looked at inside them."""

from ottla.model.limits.units import KIB, MIB

# Default of message.max.bytes / max.message.bytes (1 MiB + the batch's 12-byte prefix).
BATCH_BYTES_MAX = 1 * MIB + 12
# What one compressed batch may unpack to: a guard against decompression bombs, far above what producers send.
DECOMPRESSED_BATCH_BYTES_MAX = 256 * MIB
# No codec makes more of a byte than that (zstd: a block of 128 KiB in four bytes), and no record is smaller. A header
# that tells of more records than fit lies; each of them would take an offset.
UNPACKED_RATIO_MAX = 32_768
RECORD_BYTES_MIN = 7
# Produces to topics whose records the broker looks at (compacted ones, those with a codec or a contract of their own):
# what the batches of one request may unpack to, or so many times their own size if that is more; and their records.
LOOKED_INTO_BYTES_MAX = 64 * MIB
LOOKED_INTO_RATIO_MAX = 8
LOOKED_INTO_RECORDS_MAX = 250_000
# What one search by time looks into (a second of CPU time; a batch counts LOOKED_AT_ONCE_RECORDS at least). An honest
# header is right about its batch, so most searches look into one.
SEARCHED_RECORDS_MAX = 1_000_000
SEARCHED_BYTES_MAX = 128 * MIB
# A worker looks at so many records between two pauses (some 2 ms; where it reads their payloads: at so many), or packs
# so many bytes, and does not let batches that unpack to no more than this wait for larger ones.
LOOKED_AT_ONCE_RECORDS = 1_000
CHECKED_AT_ONCE_RECORDS = 64
# Records that are smaller than this on average are decoded to be looked at: that is quicker than to skip over them, as
# long as there is little to copy.
LOOKED_AT_BY_COLUMN_BYTES = 1 * KIB
PACKED_AT_ONCE_BYTES = 256 * KIB
LOOKED_INTO_SOON_BYTES = 1 * MIB
# A batch up to this size, packed and unpacked, is looked into on the loop, where that costs less than a worker would;
# what one turn of the loop may have of that (some 10 ms), and what a record, and unpacking, counts at least.
LOOKED_AT_HERE_PACKED_BYTES = 16 * KIB
LOOKED_AT_HERE_BYTES = 128 * KIB
LOOKED_AT_PER_TURN_BYTES = 512 * KIB
LOOKED_AT_RECORD_BYTES = 128
LOOKED_AT_UNPACKED_BYTES = 32 * KIB
# Up to this size the records of a batch that are dated too far ahead are named; of others only the header is told.
DATED_BYTES_MAX = 2 * KIB
# Records decoded in one go: enough to make the rest cheap, few enough that a hostile batch cannot fill the memory.
RECORDS_DECODED_AT_ONCE_MAX = 1_024
