"""Which settings have an effect. The others are accepted, checked and shown, and the documentation says so.

Add a name together with the code that reads it. A name may stand for a broker setting and the topic setting of the same
name. Broker settings that are only the default of a topic setting are honoured when that one is.
"""

HONOURED: frozenset[str] = frozenset(
    {
        "node.id",
        "listeners",
        "log.dirs",
    }
)
