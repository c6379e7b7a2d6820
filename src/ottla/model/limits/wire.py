"""Reading from the wire: frames, fields and the elements of a request."""

from ottla.model.limits.units import GIB, INT16_MAX, KIB, MIB

# Default of socket.request.max.bytes: a length prefix above it closes the connection before anything is allocated.
REQUEST_FRAME_BYTES_MAX = 100 * MIB
# The largest answer that our client accepts: one may hold a batch larger than fetch.max.bytes, but never this much.
RESPONSE_FRAME_BYTES_MAX = 1 * GIB
# Before a connection is authenticated there is no reason to send more than a handshake (sasl.server.max.receive.size).
REQUEST_FRAME_BYTES_BEFORE_AUTH_MAX = 512 * KIB
# An unsigned varint of 32 bits has at most 5 bytes, one of 64 bits at most 10: a longer one is an attack or a bug.
VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
# An array element takes at least one byte, so `remaining` bounds the count too; this bounds element types of no size.
ARRAY_ELEMENTS_MAX = 16 * 1024 * 1024
# Elements of all lists of a request together. The cost of an element (a microsecond, some hundred bytes of memory) has
# little to do with its size on the wire. A request with more elements closes the connection.
REQUEST_ELEMENTS_MAX = 250_000
# A request of more elements than the first number is decoded, and a large answer encoded, in steps of the second
# number: some milliseconds each.
ELEMENTS_AT_ONCE_MAX = 5_000
ELEMENTS_PER_STEP = 5_000
# Every known message has few tagged fields; thousands would only waste time.
TAGGED_FIELDS_MAX = 1024
# Strings carry int16 lengths in the classic encoding, and no field of Kafka needs more in the compact one.
STRING_BYTES_MAX = INT16_MAX
# The text of an error may repeat a name that the client sent, and must still fit into a string of the answer (as
# UTF-8).
ERROR_TEXT_CHARS_MAX = 4_096
