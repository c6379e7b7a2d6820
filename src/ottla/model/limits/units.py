"""Units, and the largest values of the wire's types."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308
