"""`show` and the generated code it prints."""

import inspect

import pytest

from ottla.wire.compile import WireError, decoder, encoder
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.show import main, show


def test_everything_about_a_message() -> None:
    text = show("produce", 9)
    assert text.startswith("Produce (key 0): ")
    assert 'class ProduceRequest(Request["ProduceResponse"], key=0, versions="3-13", flexible="9+"):' in text
    assert "ProduceRequest v9: flexible, request header v2" in text
    assert "transactional_id                       uvarint length + 1, string, 0 is null" in text
    assert "def decode(view, pos=0):" in text and "def encode(m, out, splices):" in text


def test_names_in_any_spelling() -> None:
    assert show("ListOffsets", 1) == show("list-offsets", 1) == show("2", 1)
    assert "FetchResponse v18" in show("fetch", direction="response")
    assert "diverging_epoch" in show("fetch", 12, "response") and "fixed lengths" in show("fetch", 4, "response")


def test_what_does_not_exist() -> None:
    with pytest.raises(LookupError, match="did you mean heartbeat"):
        show("heartbeet")
    with pytest.raises(LookupError, match="versions 3 to 13, not 2"):
        show("produce", 2)
    with pytest.raises(LookupError, match="neither"):
        show("produce", 9, "sideways")


def test_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "9", "response"]) == 0
    assert "ProduceResponse v9" in capsys.readouterr().out
    assert main([]) == 2
    assert main(["nothing"]) == 2
    assert "no API" in capsys.readouterr().err


def test_tracebacks_and_inspect_see_the_generated_lines() -> None:
    assert "o1 = new(ProduceRequest)" in inspect.getsource(decoder(ProduceRequest, 9))
    assert "m.topic_data" in inspect.getsource(encoder(ProduceRequest, 9))
    with pytest.raises(WireError) as caught:
        encoder(ProduceRequest, 9)(ProduceRequest(acks="x", timeout_ms=1, topic_data=[]), bytearray(), [])  # type: ignore[arg-type]
    lines = [str(entry.statement) for entry in caught.traceback]
    assert any("raise WireError" in line for line in lines)
