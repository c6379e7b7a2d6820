"""Checks of the caller's arguments: topics, partitions, records, options.

Rules:
- A `TypeError` or `ValueError` says in one line what is needed and what was given, where the mistake is made.
- Nothing here runs for every record: a record is checked when it could not be encoded, and before metadata of a topic
  that is not known yet is requested (which may create the topic).
"""

import re
from collections.abc import Iterable
from operator import index
from typing import SupportsIndex, TypeVar

from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.names import check_topic_name

Options = TypeVar("Options")
_BYTES = (bytes, bytearray, memoryview)
_SURROGATE = re.compile("[\ud800-\udfff]")


def kind_of(thing: object) -> str:
    """Return the name of the thing's type for an error message."""
    return "None" if thing is None else type(thing).__name__


def checked_options(options: Options | None, kind: type[Options]) -> Options:
    """Return the options, or the defaults if None. Raise TypeError for anything else, such as a mapping."""
    if options is None:
        return kind()
    if not isinstance(options, kind):
        raise TypeError(f"options must be {kind.__name__}(...), not {kind_of(options)}")
    return options


def checked_topic(topic: object) -> None:
    """Raise unless the topic is a valid topic name."""
    if not isinstance(topic, str):
        raise TypeError(f"topic must be a name, not {kind_of(topic)}")
    check_topic_name(topic)


class NotUnicode(UnicodeEncodeError):
    """Text has half of a surrogate pair, which no request can carry. Python marks bytes of an argument that are not
    UTF-8 in this way. The error does not contain the text, which may be a secret.
    """

    def __str__(self) -> str:
        return self.reason


def checked_text(text: str, what: str) -> str:
    """Return the text. Raise NotUnicode if it cannot be sent; `what` says what it is."""
    found = None if text.isascii() else _SURROGATE.search(text)
    if found is not None:
        raise NotUnicode("utf-8", found[0], 0, 1, f"{what} is not text in UTF-8")
    return text


def checked_name(name: object, what: str) -> str:
    """Return the name or id. Raise TypeError or NotUnicode unless it is text; `what` says what it names."""
    if not isinstance(name, str):
        raise TypeError(f"{what} must be text, not {kind_of(name)}")
    return checked_text(name, what)


def checked_names(names: object, what: str) -> list[str]:
    """Return the names as a list. Raise TypeError for one text instead of a list of them, and for other things."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"a list of names is needed for {what}, not {names!r}")
    return [checked_name(each, what) for each in names]


def checked_number(
    number: object, what: str, *, at_least: int = -limits.INT32_MAX - 1, at_most: int = limits.INT32_MAX
) -> int:
    """Return the whole number. Raise if it is none, or not in the range, which is by default that of 32 bits."""
    if type(number) is not int and (isinstance(number, bool) or not isinstance(number, SupportsIndex)):
        raise TypeError(f"{what} must be a whole number, not {kind_of(number)}")
    found = index(number)
    if not at_least <= found <= at_most:
        raise ValueError(f"{what} has to be from {at_least} to {at_most}, not {found}")
    return found


def checked_partition(partition: object) -> TopicPartition:
    """Return a (topic, index) pair as a `TopicPartition`. Raise if it cannot be one."""
    if isinstance(partition, str) or not isinstance(partition, tuple) or len(partition) != 2:
        raise TypeError(f'a partition is TopicPartition("topic", 0), not {partition!r}')
    topic, number = partition
    if not isinstance(topic, str) or not isinstance(number, SupportsIndex):
        raise TypeError(f"a partition is the name of a topic and a number, not {topic!r} and {number!r}")
    checked_text(topic, "the topic of a partition")
    found = index(number)
    if not 0 <= found <= limits.INT32_MAX:
        raise ValueError(f"the partitions of {topic!r} are numbered from 0: there is no {found}")
    return TopicPartition(topic, found)


def checked_offset(partition: TopicPartition, offset: object) -> int:
    """Return the offset. Raise if it is negative, which would make the group begin elsewhere."""
    if not isinstance(offset, SupportsIndex):
        raise TypeError(f"an offset of {TopicPartition(*partition)} must be a number, not {kind_of(offset)}")
    found = index(offset)
    if found < 0:
        raise ValueError(f"an offset of {TopicPartition(*partition)} is 0 or more, not {found}")
    if found > limits.INT64_MAX:
        raise ValueError(f"an offset of {TopicPartition(*partition)} is at most {limits.INT64_MAX}, not {found}")
    return found


def checked_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Return (topic, index) pairs as `TopicPartition`s. Raise if one of them cannot be one."""
    if isinstance(partitions, str | TopicPartition) or not isinstance(partitions, Iterable):
        raise TypeError(f'a list of TopicPartition("topic", 0) is needed, not {partitions!r}')
    return [checked_partition(each) for each in partitions]


def explained(
    error: Exception, topic: object, value: object, key: object, headers: object, partition: object, timestamp: object
) -> Exception:
    """Return the caller's mistake because of which a record cannot be encoded; or the error itself if there is none."""
    return mistake_in(topic, value, key, headers, partition, timestamp) or error


def mistake_in(
    topic: object, value: object, key: object, headers: object, partition: object, timestamp: object
) -> Exception | None:
    """Return the error to raise for a mistake in the arguments of a record, or None."""
    if not isinstance(topic, str):
        return TypeError(f"topic must be a name, not {kind_of(topic)}")
    for name, content in (("value", value), ("key", key)):
        if content is not None and not isinstance(content, _BYTES):
            return TypeError(_not_bytes(name, content))
    if partition is not None and not isinstance(partition, int):
        return TypeError(f"partition must be a number or None, not {kind_of(partition)}")
    if timestamp is not None and not isinstance(timestamp, int):
        return TypeError(f"timestamp must be a whole number of milliseconds, not {kind_of(timestamp)}")
    return TypeError(why) if (why := _headers_problem(headers)) is not None else None


def _headers_problem(headers: object) -> str | None:
    pairs = 'headers must be pairs of a name and bytes, as in [("source", b"web")]'
    if isinstance(headers, dict):
        return f"{pairs}, not a dict: pass its items()"
    if isinstance(headers, str | bytes) or not isinstance(headers, Iterable):
        return f"{pairs}, not {kind_of(headers)}"
    for each in headers:
        if not isinstance(each, tuple | list) or len(each) != 2:
            return f"{pairs}, not {each!r}"
        name, content = each
        if not isinstance(name, str):
            return f"the name of a header must be str, not {kind_of(name)}"
        if content is not None and not isinstance(content, _BYTES):
            return _not_bytes(f"the value of header {name!r}", content)
    return None


def _not_bytes(name: str, content: object) -> str:
    hint = ": encode it" if isinstance(content, str) else ""
    return f"{name} must be bytes or None, not {kind_of(content)}{hint}"


# --- settings of topics and other resources -------------------------------------------------------------------------

# The value of a setting: all of Kafka's are text; None stands for the default.
Setting = str | int | float | None


def setting_text(name: str, value: Setting) -> str | None:
    """Return the value as text, as it is sent."""
    if value is None:
        return None
    if isinstance(value, str):
        return checked_text(value, f"the value of {name}")
    if not isinstance(value, int | float):
        raise TypeError(f"the value of {name} must be text or a number, not {kind_of(value)}")
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- options of clients ---------------------------------------------------------------------------------------------


def check_numbers(options: object, *names: str, at_least: int = 0, at_most: int = limits.INT32_MAX) -> None:
    """Raise unless all of the named options are numbers in the range."""
    for name in names:
        number = getattr(options, name)
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise TypeError(f"{name} must be a number, not {kind_of(number)}")
        if number < at_least:
            raise ValueError(f"{name} has to be at least {at_least}, not {number}")
        if number > at_most:
            raise ValueError(f"{name} has to be at most {at_most}, not {number}")


def check_texts(options: object, *names: str) -> None:
    """Raise unless all of the named options are text or None."""
    for name in names:
        text = getattr(options, name)
        if text is None:
            continue
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a str, not {kind_of(text)}")
        checked_text(text, name)
