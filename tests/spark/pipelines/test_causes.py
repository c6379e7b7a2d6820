"""What is said of failures: the texts in `failures/` are Spark's own, of 4.2, as queries of a real session gave them,
or (`connect-…`) of a real Connect server; only Java's stacks are cut and paths changed. No Spark is started here."""

import importlib
import pickle
from importlib import import_module
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.serializers import CloudPickleSerializer

from ottla.client.errors import DeliveryFailed, NotConnected, TopicUnknown
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.registry import RegistryError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import PIPELINE_ERROR_CHARS_MAX
from ottla.spark.pipelines import causes
from ottla.spark.pipelines.causes import CauseKind, cause_of
from ottla.spark.plain import told_while_pickled
from ottla.spark.typed import dead_letters as typed_dead

TEXTS = {path.stem: path.read_text() for path in sorted(Path(__file__).with_name("failures").iterdir())}
PRICE = "ValueError: cannot price '2' second line of the message (at shop.py:9 in helper; among {})"
UP_TO_3 = "offsets up to 3 of probe.orders-0"
BAD = "the record at offset {} does not decode: {}; option on.bad says what becomes of such records"
CAST = (
    '[CAST_INVALID_INPUT] The value \'x0\' of the type "STRING" cannot be cast to "INT" because it is malformed. '
    "Correct the value as per the syntax, or change its target type. "
    f"Use `try_cast` to tolerate malformed input and return NULL instead (among {UP_TO_3})"
)
KILLED = f"a Python worker was killed, or crashed (among {UP_TO_3}); if it comes again: is there enough memory?"
REGISTRY = "the schema registry at 127.0.0.1:26294 does not answer: [Errno 111] Connection refused"
AWAY = "no connection to 127.0.0.1:30176: connection refused"
FULL = "a disk is full: no space left on device; make room where the checkpoints are"
NOT_WRITABLE = "files cannot be written: {}; check the directory and its permissions"
CHANGED = (
    "the query does not fit its checkpoint: {}; undo the change, or begin anew with --from, which uses new checkpoints"
)
DAMAGED = "the checkpoint is damaged: {}; restore it, or begin anew with --from, which uses new checkpoints"
TOO_LARGE = "MESSAGE_TOO_LARGE: a record of 3000076 bytes is larger than max_request_bytes=1048576"

EXPECTED: dict[str, tuple[CauseKind, str]] = {
    # The user's functions: UDFs of all kinds, with state, for each batch, on workers and on the driver.
    "price": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "pandas-price": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "stateful": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "foreach": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "foreachinner": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "connect-price": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "connect-foreach": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "connect-foreachinner": (CauseKind.CODE, PRICE.format(UP_TO_3)),
    "chained": (CauseKind.CODE, f"RuntimeError: pricing is down (at shop.py:33 in chained; among {UP_TO_3})"),
    "odd": (CauseKind.CODE, f"Odd (at shop.py:64 in odd; among {UP_TO_3})"),
    "badtype": (
        CauseKind.CODE,
        "TypeError: unsupported operand type(s) for +: 'int' and 'str' "
        "(at probe2.py:196 in <lambda>; among offsets up to 3 of bt.in-0)",
    ),
    "http": (
        CauseKind.UNANSWERED,
        f"URLError: <urlopen error [Errno 111] Connection refused> (at shop.py:48 in http; among {UP_TO_3})",
    ),
    # Expressions.
    "castbad": (CauseKind.DATA, CAST),
    "connect-castbad": (CauseKind.DATA, CAST),
    "raising": (CauseKind.DATA, f"[USER_RAISED_EXCEPTION] no two please (among {UP_TO_3})"),
    # Records and topics.
    "badrecord": (CauseKind.BAD_RECORD, BAD.format("0 of probe.orders-0", "value: the value is no object")),
    "connect-badrecord": (CauseKind.BAD_RECORD, BAD.format("0 of probe.orders-0", "value: the value is no object")),
    "newschema": (CauseKind.BAD_RECORD, BAD.format("1 of r.in-0", "value: id: a string cannot be read as long")),
    "unknownid": (CauseKind.BAD_RECORD, BAD.format("2 of r.in-0", "value: the registry has no schema 77")),
    "deleted": (
        CauseKind.DATA_LOSS,
        "data loss (topic_deleted): d.in-0 is gone; it was read up to 4; the topic was deleted. "
        "Set the option failOnDataLoss to false to go on with what is there",
    ),
    "badpartition": (
        CauseKind.DATA,
        f"Partition 7 of topic probe.copies is not in the range [0, 1) (among {UP_TO_3})",
    ),
    "toolarge": (CauseKind.REFUSED, TOO_LARGE),
    "connect-toolarge": (CauseKind.REFUSED, TOO_LARGE),
    # Those who are away.
    "away": (CauseKind.BROKER_AWAY, AWAY),
    "away-sink": (CauseKind.BROKER_AWAY, AWAY),
    "registryaway": (CauseKind.REGISTRY_AWAY, REGISTRY),
    "registryaway-build": (CauseKind.REGISTRY_AWAY, REGISTRY),
    "registryaway-sink": (CauseKind.REGISTRY_AWAY, REGISTRY),
    "killed": (CauseKind.WORKER_LOST, KILLED),
    "connect-killed": (CauseKind.WORKER_LOST, KILLED),
    "executor": (
        CauseKind.WORKER_LOST,
        "an executor was lost: Command exited with code 137 (among offsets up to 3 of e.in-0); "
        "if it comes again: is there enough memory?",
    ),
    "hungry": (
        CauseKind.WORKER_LOST,
        f"MemoryError (at shop.py:43 in hungry; among {UP_TO_3}); if it comes again: is there enough memory?",
    ),
    "connect-gone": (
        CauseKind.SPARK_GONE,
        "Spark is gone: its Connect server does not answer; start the pipeline again: it goes on from its checkpoints",
    ),
    # Others who write.
    "fenced": (CauseKind.FENCED, "another writer took over: INVALID_PRODUCER_EPOCH: The producer epoch is out of date"),
    "concurrent": (
        CauseKind.SHARED,
        "another query uses the same checkpoint: both wrote down the same batch; "
        "give each query a checkpoint of its own",
    ),
    "samename": (
        CauseKind.SPARK_BUSY,
        "Cannot start query with name twice as a query with that name is already active in this SparkSession",
    ),
    # Checkpoints.
    "diskfull": (CauseKind.DISK_FULL, FULL),
    "diskfull-start": (CauseKind.DISK_FULL, FULL),
    "statefull": (CauseKind.DISK_FULL, FULL),
    "readonly": (
        CauseKind.NOT_WRITABLE,
        NOT_WRITABLE.format(
            "/data/small/cp/offsets/.2.ed9c337a-a794-4cbe-8c3b-dca8f40848d5.tmp (Read-only file system)"
        ),
    ),
    "readonly-start": (CauseKind.NOT_WRITABLE, NOT_WRITABLE.format("mkdir of file:/data/small/cp3 failed")),
    "parquet": (CauseKind.NOT_WRITABLE, NOT_WRITABLE.format("Parent path is not a directory: file:/dev/null")),
    "connect-parquet": (CauseKind.NOT_WRITABLE, NOT_WRITABLE.format("Parent path is not a directory: file:/dev/null")),
    "changed-sources": (CauseKind.CHANGED, CHANGED.format("it was made with 1 sources, and there are 2 now")),
    "changed-state": (
        CauseKind.CHANGED,
        CHANGED.format(
            "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key schema"
        ),
    ),
    "changed-stateless": (
        CauseKind.CHANGED,
        CHANGED.format(
            "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match "
            "with the operator in state metadata. This likely to happen when user adds/removes/changes stateful "
            "operator of existing streaming query"
        ),
    ),
    "corrupt-offsets": (
        CauseKind.DAMAGED,
        DAMAGED.format(
            "Failed to read log file file:/data/cp/corrupt/offsets/0. [MALFORMED_LOG_FILE] Log file was malformed: "
            "failed to read correct log version from junk"
        ),
    ),
    "corrupt-meta-start": (
        CauseKind.DAMAGED,
        DAMAGED.format(
            "Unrecognized token 'junk': was expecting "
            "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_failure_is_one_line_that_says_what_happened_where(name: str) -> None:
    cause = cause_of(TEXTS[name])
    assert (cause.kind, str(cause)) == EXPECTED[name]
    assert cause.passes == cause.kind.passes


def test_records_of_the_batch_are_named_as_far_as_the_query_has_read() -> None:
    batch = TEXTS["price"].replace("Committed Offsets: {}", 'Committed Offsets: {S@1f: {"probe.orders": {"0": 2}}}')
    assert str(cause_of(batch)) == PRICE.format("offsets 2 to 3 of probe.orders-0")
    one = batch.replace('{"0": 2}', '{"0": 3}')
    assert str(cause_of(one)) == PRICE.replace("among {}", "the record at offset 3 of probe.orders-0")
    more = '{"probe.orders": {"0": 4, "1": 0, "2": 7, "3": 8, "4": 9}}'
    many = batch.replace('{"probe.orders": {"0": 4}}', more)
    assert "offsets 2 to 3 of probe.orders-0, offsets 0 to 6 of probe.orders-2, " in str(cause_of(many))
    assert str(cause_of(many)).endswith(" and 1 more partitions)")


def test_a_user_whose_service_does_not_answer_is_tried_again() -> None:
    def said(error: str) -> bool:
        return cause_of(TEXTS["odd"].replace("ottla_pipeline_shop.Odd", f"{error}: no answer")).passes

    assert said("requests.exceptions.ConnectionError") and said("httpx.ReadTimeout") and said("TimeoutError")
    assert not said("ValueError") and not said("requests.exceptions.HTTPError") and not said("KeyError")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DeliveryFailed("nothing was delivered within 120000 ms: no connection"), CauseKind.BROKER_AWAY),
        (TopicUnknown("nothing known of topic 'dead' within 60000 ms"), CauseKind.BROKER_AWAY),
        (ApiError(ErrorCode.NOT_ENOUGH_REPLICAS), CauseKind.BROKER_AWAY),
        (ApiError(ErrorCode.MESSAGE_TOO_LARGE), CauseKind.REFUSED),
    ],
)
def test_a_dead_letter_waits_for_a_broker_that_is_away(
    error: Exception, kind: CauseKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        def __init__(self, options: ClientOptions) -> None:
            pass

        async def __aenter__(self) -> "Away":
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

        async def enqueue(self, *_: object, **__: object) -> None:
            raise error

    headers = tuple((typed_dead.PREFIX + name, b"1") for name in typed_dead._SAID)
    monkeypatch.setattr(typed_dead, "Producer", Away)
    monkeypatch.setattr(typed_dead, "letters", lambda dead: [typed_dead.Letter(None, b"x", headers)])
    with pytest.raises(typed_dead.Undelivered) as raised:
        typed_dead.send_dead(ClientOptions(parse_bootstrap("127.0.0.1:9")), "dead", cast("pa.RecordBatch", None))
    told = cause_of(raised.value)
    assert (told.kind, told.passes) == (kind, kind.passes)


def test_answers_of_brokers_pass_as_kafka_says() -> None:
    def cause(what: str) -> causes.Cause:
        return cause_of(TEXTS["toolarge"].replace(TOO_LARGE, what))

    busy = cause("NOT_ENOUGH_REPLICAS: Too few replicas are in sync")
    assert (busy.kind, busy.passes) == (CauseKind.BROKER_BUSY, True)
    lasting = cause("TOPIC_AUTHORIZATION_FAILED: No permission on the topic")
    assert (lasting.kind, lasting.passes) == (CauseKind.REFUSED, False)
    assert cause("SOMETHING_NEW: of a newer broker").passes is False


def test_a_registry_that_is_not_ready_passes_and_one_that_refuses_lasts() -> None:
    def cause(error: RegistryError) -> causes.Cause:
        raised = f"RegistryUnreachable: {REGISTRY}"
        return cause_of(TEXTS["registryaway-sink"].replace(raised, f"RegistryError: {error}"))

    busy = cause(RegistryError(500, 50003, "there is no leader"))
    assert (busy.kind, busy.passes) == (CauseKind.REGISTRY_AWAY, True)
    refused = cause(RegistryError(409, 409, "the schema is incompatible with an earlier one"))
    assert (refused.kind, refused.passes) == (CauseKind.REFUSED, False)
    assert str(refused) == "the schema registry answered 409: the schema is incompatible with an earlier one"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotConnected(AWAY), CauseKind.BROKER_AWAY),
        (ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), CauseKind.REFUSED),
        (ApiError(ErrorCode.NOT_ENOUGH_REPLICAS), CauseKind.BROKER_BUSY),
        (ValueError("batch 3 is done"), CauseKind.CODE),
    ],
)
def test_an_error_while_a_batch_begins_is_known_although_spark_pickles_then(error: Exception, kind: CauseKind) -> None:
    """The sink begins a batch when Spark pickles it for the tasks; Spark lets errors of pickling pass as they are."""

    class Begins:
        def __getstate__(self) -> None:
            with told_while_pickled():
                raise error

    with pytest.raises(pickle.PicklingError) as raised:
        CloudPickleSerializer().dumps(Begins())
    told = cause_of(TEXTS["odd"].replace("ottla_pipeline_shop.Odd", f"_pickle.PicklingError: {raised.value}"))
    assert (told.kind, told.passes) == (kind, kind.passes)
    assert told.what == (f"ValueError: {error}" if isinstance(error, ValueError) else str(error))


def test_a_batch_that_another_run_finishes_is_run_again() -> None:
    """The class decides, whatever the sentence is."""

    def cause(error: str) -> causes.Cause:
        told = TEXTS["badpartition"].replace("sink.schema.BadRows", f"sink.protocol.{error}")
        return cause_of(told.replace("Partition 7 of topic probe.copies is not in the range [0, 1)", "run it again"))

    assert [cause(error).kind for error in ("BatchRefused", "UnfinishedBatch", "TakenOver")] == [
        *(CauseKind.REFUSED, CauseKind.UNFINISHED, CauseKind.FENCED)
    ]
    assert [cause(error).passes for error in ("BatchRefused", "UnfinishedBatch", "TakenOver")] == [False, True, True]


def test_the_classes_that_decide_exist() -> None:
    ours = [name.rpartition(".") for name in causes._CLASSES if name.startswith("ottla.")]
    assert len(ours) > 10
    for module, _, name in ours:
        assert issubclass(getattr(import_module(module), name), Exception)


def test_exceptions_of_this_process_are_said_in_the_same_way() -> None:
    assert str(cause_of(ValueError("no\nsuch thing"))) == "ValueError: no such thing"
    assert str(cause_of(KeyError())) == "KeyError"
    assert str(cause_of(AssertionError("x"))) == "AssertionError: x"
    assert cause_of(ConnectionRefusedError(111, "Connection refused")).passes


def test_who_cannot_be_connected_to_when_spark_is_asked_is_spark() -> None:
    cause = causes.cause_of_call(ConnectionRefusedError(111, "Connection refused"))
    assert (cause.kind, cause.passes, cause.is_worth_another_run) == (CauseKind.SPARK_GONE, False, True)
    assert causes.cause_of_call(ValueError("no")).kind is CauseKind.CODE


def test_exceptions_of_ours_are_known_by_names_that_exist() -> None:
    for name in causes._CLASSES:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module or "builtins"), kind), type), name


def test_the_documentation_says_what_becomes_of_each_kind() -> None:
    page = Path(__file__).parents[3] / "docs" / "pipelines.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    for kind in CauseKind:
        cells = [[each.strip() for each in row.strip("| ").split(" | ")] for row in rows if kind.value in row]
        assert cells, f"{kind.name} ({kind.value}) is not in docs/pipelines.md"
        *_, restarts, code = cells[0]
        cause = causes.Cause(kind, "", kind.passes)
        assert restarts.endswith("yes") == kind.passes and code == ("75" if cause.is_worth_another_run else "1"), kind


FRAGMENTS = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "/home/me/shop.py", line 9, in helper',
        "    raise ValueError(text)",
        "ValueError: no",
        "py4j.protocol.Py4JJavaError: An error occurred while calling o1.save.",
        ": org.apache.spark.SparkException: [A_CONDITION] what",
        "\tat org.apache.spark.Some.thing(Some.scala:1)",
        "Caused by: java.io.EOFException",
        "Caused by: java.io.IOException: words",
        "=== Streaming Query ===",
        'Current Available Offsets: {A@1: {"t": {"0": 4, "x": 1}}, B@2: {"": {}}, C@3: [], D@4: {"t": 1}}',
        "JVM stacktrace:",
        "SQLSTATE: 38000",
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] Traceback",
        "",
        "\x1b[31m\u2028red\x00",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=20), max_size=12).map("\n".join))
def test_whatever_the_text_is_one_line_says_something(text: str) -> None:
    for error in (text, ValueError(text), RuntimeError(text)):
        said = str(cause_of(error))
        assert said.strip() and "\n" not in said and said.isprintable()
        assert "Traceback (most recent call last):" not in said
        assert len(cause_of(error).what) <= PIPELINE_ERROR_CHARS_MAX + 100


def test_pages_become_lines() -> None:
    assert len(str(cause_of(ValueError("long " * 10_000)))) <= PIPELINE_ERROR_CHARS_MAX + 20
