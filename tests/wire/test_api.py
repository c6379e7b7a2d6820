"""The table of APIs, header versions, and what importing costs."""

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

from ottla.wire import messages
from ottla.wire.api import API_NAMES, module_of, request_class, response_class, snake
from ottla.wire.header import request_header_version, response_header_version
from ottla.wire.message import Request, Response

FIRST_OF_OURS = 30_000  # ADR 0048


def test_keys_are_those_of_kafka_4_3_and_a_few_of_ours() -> None:
    kafkas = [key for key in API_NAMES if key < FIRST_OF_OURS]
    assert sorted(kafkas) == [key for key in range(93) if key not in (4, 5, 6, 7)]
    ours = API_NAMES.keys() - kafkas
    assert ours and all(API_NAMES[key].startswith("Ottla") for key in ours)
    assert len(set(API_NAMES.values())) == len(API_NAMES)


@pytest.mark.parametrize("key", API_NAMES)
def test_every_api_is_declared_where_its_name_says(key: int) -> None:
    request, response, name = request_class(key), response_class(key), API_NAMES[key]
    assert (request.key, response.key) == (key, key)
    assert (request.name, response.name) == (name, name)
    assert (request.__name__, response.__name__) == (f"{name}Request", f"{name}Response")
    assert issubclass(request, Request) and issubclass(response, Response)
    assert request.versions == response.versions
    assert request.flexible == response.flexible
    module = import_module(f"ottla.wire.messages.{module_of(key)}")
    assert (module.__doc__ or "").startswith(f"{name} (key {key}): ")


def test_every_module_is_an_api() -> None:
    prefix = f"{messages.__name__}."
    found = {module.name for module in walk_packages(messages.__path__, prefix) if not module.ispkg}
    assert found == {prefix + module_of(key) for key in API_NAMES}


def test_snake() -> None:
    assert snake("ListOffsets") == "list_offsets"
    assert snake("OffsetForLeaderEpoch") == "offset_for_leader_epoch"


def test_unknown_keys() -> None:
    for key in (4, 93, -1):
        with pytest.raises(KeyError):
            request_class(key)


def test_header_versions() -> None:
    assert (request_header_version(0, 8), response_header_version(0, 8)) == (1, 0)
    assert (request_header_version(0, 9), response_header_version(0, 9)) == (2, 1)
    assert (request_header_version(17, 1), response_header_version(17, 1)) == (1, 0)
    # The one exception: whoever asks may be unable to read anything newer.
    assert (request_header_version(18, 3), response_header_version(18, 3)) == (2, 0)


def test_importing_the_table_imports_no_message() -> None:
    # Counted rather than timed: modules are what start-up time is made of.
    code = "import sys; import ottla.wire.frame; print(*[name for name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "ottla.wire.compile" in loaded
    assert [name for name in loaded if name.startswith(("ottla.wire.messages.", "ottla.wire.journal"))] == []
    heavy = {"asyncio", "inspect", "dataclasses", "socket", "logging", "json", "random", "typing_extensions"}
    assert heavy & set(loaded) == set()


def test_importing_messages_generates_nothing() -> None:
    code = """if True:
        import linecache
        from ottla.wire.api import API_NAMES, module_of, request_class
        classes = [request_class(key) for key in API_NAMES]
        assert not [name for name in linecache.cache if "ottla" in name or "code" in name], linecache.cache
        assert not [cls for cls in classes if cls._fields is not None]
    """
    subprocess.run([sys.executable, "-c", code], check=True)
