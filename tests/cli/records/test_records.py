"""`ottla produce` and `ottla consume`: every way in and every way out."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from ottla.cli.records import text as records
from ottla.client.consumer.ranges import ConsumedRecord

Cli = Callable[..., Run]


def values(run: Run) -> list[str]:
    return run.out.splitlines()


def test_lines_in_lines_out(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    assert "3 records to t" in ottla("produce", "t", stdin="one\ntwo\n\nthree\n").err
    assert values(ottla("consume", "t", "-F", "raw")) == ["one", "two", "three"]
    ottla("produce", "t", "four", "five", "-p", "0")
    assert values(ottla("consume", "t", "-F", "raw", "-o", "3")) == ["four", "five"]
    assert values(ottla("consume", "t", "-F", "raw", "--last", "2")) == ["four", "five"]
    assert values(ottla("consume", "t", "-F", "raw", "-n", "1")) == ["one"]


def test_keys_headers_and_nulls(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    ottla("topic", "create", "typed")
    ottla("produce", "t", "-K", "\\t", "--null", "NULL", "-H", "a=1", "-H", "b=", stdin="k\tv\nNULL\tNULL\n")
    found = [json.loads(line) for line in ottla("consume", "t", "-F", "json").lines]
    assert [(each["key"], each["value"]) for each in found] == [("k", "v"), (None, None)]
    assert found[0]["headers"] == [["a", "1"], ["b", ""]]
    assert "between key and value" in ottla("produce", "t", "-K", ":", stdin="no separator\n", code=1).err
    typed = [f"-H{each}" for each in ("a=1", "a=2", "raw=hex:00ff", "gone=null:", '"x=y"= z ')]
    ottla("produce", "typed", "v", *typed)
    found = [json.loads(line) for line in ottla("consume", "typed", "-F", "json").lines]
    assert found[0]["headers"] == [["a", "1"], ["a", "2"], ["raw", {"base64": "AP8="}], ["gone", None], ["x=y", " z "]]
    for wrong in ("a", "a: b", "a=hex:0"):
        assert "--header" in ottla("produce", "typed", "v", "-H", wrong, code=2).err
    shown = ottla("consume", "t", "-t", "{partition}@{offset} {key}={value} {headers}\\n")
    assert values(shown) == ["0@0 k=v a=1,b=", "0@1 null=null a=1,b="]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_json_goes_round(ottla: Cli, tmp_path: Path, codec: str) -> None:
    ottla("topic", "create", "t", "-p", "2")
    ottla("topic", "create", "copy", "-p", "2")
    sent = [
        {"key": "k", "value": "ü", "headers": {"h": "1"}, "partition": 1, "timestamp": 1000},
        {"value": {"nested": [1, 2]}, "partition": 0},
        {"key_base64": "/w==", "value_base64": "AAH/", "partition": 0},
        {"value": None, "partition": 1, "headers": [["n", None], ["b", {"base64": "/w=="}]]},
    ]
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(json.dumps(each) for each in sent))
    ottla("produce", "t", "-F", "json", "-f", str(file), "-z", codec)
    first = ottla("consume", "t", "-F", "json").out
    ottla("produce", "copy", "-F", "json", stdin=first)
    second = ottla("consume", "copy", "-F", "json").out
    assert second == first.replace('"topic": "t"', '"topic": "copy"')
    assert '"value": "{\\"nested\\":[1,2]}"' in first and '"value_base64": "AAH/"' in first
    for bad in ("[1]", '{"partition": "x"}', '{"timestamp": 1.5}', '{"headers": [1]}', '{"key_base64": "!"}'):
        assert "not a record" in ottla("produce", "t", "-F", "json", stdin=bad, code=1).err
    assert "not JSON" in ottla("produce", "t", "-F", "json", stdin="{nope\n", code=1).err


def test_places(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    lines = [json.dumps({"value": str(n), "timestamp": 1_700_000_000_000 + n * 1000}) for n in range(5)]
    ottla("produce", "t", "-F", "json", stdin="\n".join(lines))
    assert values(ottla("consume", "t", "-F", "raw", "--from-timestamp", "1700000003000")) == ["3", "4"]
    assert values(ottla("consume", "t", "-F", "raw", "--from-timestamp", "2023-11-14T22:13:24+00:00")) == ["4"]
    assert values(ottla("consume", "t", "-F", "raw", "--since", "10m")) == []
    ottla("produce", "t", "now")
    assert values(ottla("consume", "t", "-F", "raw", "--since", "1h30m")) == ["now"]
    assert values(ottla("consume", "t", "-F", "raw", "--follow", "--from-beginning", "-n", "6"))[-1] == "now"
    assert "only one of" in ottla("consume", "t", "--since", "1h", "-o", "3", code=2).err
    assert "not a duration" in ottla("consume", "t", "--since", "soon", code=2).err
    assert "neither milliseconds" in ottla("consume", "t", "--from-timestamp", "soon", code=2).err
    gone = ottla("consume", "t", "-o", "99", code=1)
    assert "does not exist yet: the log ends at 6" in gone.err and "hint:" in gone.err


def test_acks_and_verbose(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    found = [json.loads(line) for line in ottla("produce", "t", "a", "b", "--acks", "1", "-v").lines]
    assert [each["offset"] for each in found] == [0, 1]
    ottla("produce", "t", "c", "--acks", "0")
    assert "is not one of" in ottla("produce", "t", "c", "--acks", "7", code=2).err


def test_unknown_partitions_and_topics(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    assert "there is no 4" in ottla("consume", "t", "-p", "4", code=1).err
    assert "there is no 4" in ottla("produce", "t", "x", "-p", "4", code=1).err
    assert "there is no topic" in ottla("consume", "nope", code=1).err
    assert "--template" in ottla("consume", "t", "-F", "template", code=2).err
    assert "there is no field" in ottla("consume", "t", "-t", "{nope}", code=2).err


RECORD = ConsumedRecord("t", 1, 2, 1_700_000_000_000, b"k", b"\x00v", (("h", None),), 0)


def test_text_and_hex() -> None:
    plain = records.as_text(RECORD, colour=False).decode()
    assert plain.startswith("t-1@2  20") and plain.endswith("k  \x00v  {h: null}\n")
    assert "\x1b[" in records.as_text(RECORD, colour=True).decode()
    assert b"00000000  00 76" in records.as_hex(RECORD) and b"h: null" in records.as_hex(RECORD)
    null = RECORD._replace(key=None, value=None)
    assert "null" in records.as_text(null, colour=False).decode()
    assert records.as_raw(null) == b"\n"
