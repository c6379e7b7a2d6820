"""Which files are files of settings."""

import pytest

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.properties import PropertiesError
from ottla.model.settings_file import parse_settings


def parsed(text: str | bytes) -> dict[str, str]:
    return parse_settings(text.encode() if isinstance(text, str) else text, BROKER_SETTINGS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not a kafka dir", "line 1 is no setting: it is not NAME=VALUE"),
        ("node.id=1\n\n# fine\nhello", "line 4 is no setting: it is not NAME=VALUE"),
        ("node.id=1\n<html lang='en'>\n", "line 2 is no setting: it is not NAME=VALUE"),
        ('{"node.id": 1}', "line 1 is no setting: what stands before its ':' is no name"),
        ("[server]\nport=1", "line 1 is no setting: it is not NAME=VALUE"),
        ("=value", "line 1 is no setting: what stands before its '=' is no name"),
        ("import sys\n", "line 1 is no setting: it is not NAME=VALUE"),
        ("a=1\nb=\\u00g0", "line 2: malformed \\uXXXX escape"),
        (b"a=1\nb=2\n\x7fELF\x02\x01\x00", "line 3 is no text: it holds the byte 0x7f"),
        (b"\x00" * 8, "line 1 is no text: it holds the byte 0x00"),
        ("x" * 500, "line 1 is no setting: it is not NAME=VALUE"),
    ],
)
def test_what_is_no_setting(text: str | bytes, message: str) -> None:
    with pytest.raises(PropertiesError) as raised:
        parsed(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# nothing\n! at all\n   \n", {}),
        ("node.id 1", {"node.id": "1"}),
        ("listeners PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("listeners", {"listeners": ""}),
        ("log.dirs=/a,\\\n    /b", {"log.dirs": "/a,/b"}),
        ("node.id : 7", {"node.id": "7"}),
        ("something=1", {"something": "1"}),
        ("my.plugin.option", {"my.plugin.option": ""}),
        ("listener.name.x-y.ssl.keystore.location=/k", {"listener.name.x-y.ssl.keystore.location": "/k"}),
        ("broker.rack=\\u00e9", {"broker.rack": "é"}),
        ("broker.rack=é", {"broker.rack": "é"}),
        ("# für Kafka\nbroker.rack=é".encode("iso-8859-1"), {"broker.rack": "é"}),
        (b"\xef\xbb\xbfnode.id=1\r\n", {"node.id": "1"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_what_java_takes(text: str | bytes, values: dict[str, str]) -> None:
    assert parsed(text) == values
