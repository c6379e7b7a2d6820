"""Every command over a table of inputs that cannot work: one line says what is wrong, another what to do.

No command shows a traceback for what a user can cause, and none ends with an exit status of 0. Wrong usage is 2,
whatever else cannot be done is 1.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import Run, invoke

from ottla.cli.docs import every_command
from ottla.testing.broker import EmbeddedBroker

NOBODY = "127.0.0.1:1"
LONG = 64 * "a"  # DNS knows names with parts of at most 63 characters

# What calls each command correctly; `{...}` is a path below the test's directory. None: it is started as a process.
VALID: dict[str, str | None] = {
    "up": None,
    "start": None,
    "format": None,
    "registry": None,
    "demo": None,
    "produce": "produce t v",
    "consume": "consume t",
    "sql": "sql \"select * from topic('t')\" --registry off",
    "api": "api",
    "cluster status": "cluster status",
    "cluster elect": "cluster elect",
    "cluster reassign": "cluster reassign t:0=1",
    "cluster balance": "cluster balance",
    "cluster drain": "cluster drain 1",
    "cluster add-broker": "cluster add-broker --listen 127.0.0.1:9999",
    "cluster remove-broker": "cluster remove-broker 1",
    "cluster quorum": "cluster quorum",
    "cluster add-voter": "cluster add-voter 2",
    "cluster remove-voter": "cluster remove-voter 2",
    "cluster features": "cluster features",
    "topic create": "topic create new",
    "topic list": "topic list",
    "topic describe": "topic describe t",
    "topic alter": "topic alter t retention.ms=1000",
    "topic delete": "topic delete t --yes",
    "topic add-partitions": "topic add-partitions t 3",
    "topic delete-records": "topic delete-records t --all",
    "config get": "config get topic t",
    "config set": "config set topic t retention.ms=1000",
    "schema register": "schema register s {good.avsc}",
    "schema list": "schema list",
    "schema show": "schema show s",
    "schema diff": "schema diff s 1 2",
    "schema check": "schema check s {good.avsc}",
    "schema delete": "schema delete s",
    "group list": "group list",
    "group describe": "group describe g",
    "group reset-offsets": "group reset-offsets g --to earliest",
    "group delete": "group delete g",
    "group delete-offsets": "group delete-offsets g -t t",
    "share describe": "share describe g",
    "share reset-offsets": "share reset-offsets g --to earliest",
    "share delete": "share delete g",
    "share delete-offsets": "share delete-offsets g -t t",
    "share list": "share list",
    "share consume": "share consume t -g g",
    "dlq list": "dlq list t",
    "dlq redrive": "dlq redrive t --all",
    "txn list": "txn list",
    "txn describe": "txn describe x",
    "txn abort": "txn abort x",
    "pipeline check": None,
    "pipeline run": None,
    "pipeline list": "pipeline list",
    "pipeline status": "pipeline status p",
    "pipeline stop": "pipeline stop p",
    "log dump": None,
    "log verify": None,
    "wire show": None,
    "wire list": None,
}


class Bad(NamedTuple):
    words: str
    code: int
    told: str = ""
    stdin: str = ""


# What nobody has to be asked about.
USAGE = [
    Bad("nope", 2, "No such command"),
    Bad("--nope", 2, "No such option"),
    Bad("topic", 2),
    Bad("topic creat", 2, "Did you mean"),
    Bad("up --nope", 2),
    Bad("up -l :80000", 2, "ports go from 0 to 65535"),
    Bad("up -l here", 2, "is not HOST:PORT"),
    Bad("up -l 127.0.0.1:0 --registry nowhere", 2, "is not HOST:PORT"),
    Bad("up -l [::1", 2, "is not HOST:PORT"),
    Bad("up -l ..:0", 2, "is not the name of a host"),
    Bad(f"up -l {LONG}:0", 2, "is not the name of a host"),
    Bad(f"up -l 127.0.0.1:0 --registry {LONG}:0", 2, "is not the name of a host"),
    Bad("up --brokers 0", 2),
    Bad("up --brokers many", 2),
    Bad("up --controllers 0", 2),
    Bad("up --ephemeral --data {d}", 2, "give one of them"),
    Bad("up --set nothing -d {d} -l 127.0.0.1:0", 2, "NAME=VALUE"),
    Bad("up --set =x -d {d} -l 127.0.0.1:0", 2, "NAME=VALUE"),
    Bad("up --set log.dirs=/x -d {d}", 2, "--data"),
    Bad("up --set num.partitions=many -d {d} -l 127.0.0.1:0", 1, "num.partitions"),
    Bad("up -d {file} -l 127.0.0.1:0", 1, "is a file"),
    Bad("up -d {file}/d -l 127.0.0.1:0", 1),
    Bad("up -d /proc/no/d -l 127.0.0.1:0", 1),
    Bad("up -n 3 -d {file} -l 127.0.0.1:0", 1, "is a file"),
    Bad("up -n 3 -d {file}/d -l 127.0.0.1:0", 1),
    Bad("up -n 3 -d /proc/no/d -l 127.0.0.1:0", 1),
    Bad("up -n 3 -d {full} -l 127.0.0.1:0", 1, "holds no cluster"),
    Bad("up -n 3 -d {d} -l 127.0.0.1:65534", 1, "ports end at 65535"),
    Bad("up -n 3 -d {d} -l 192.0.2.1:0", 1),
    Bad("up -n 3 -d {d} -l no.such.host.invalid:0", 1),
    Bad("up -n 3 -d {d} -l 127.0.0.1:0 --set nothing", 1, "NAME=VALUE"),
    Bad("up -n 3 -d {d} -l 127.0.0.1:0 --set =x", 1, "NAME=VALUE"),
    Bad("up -d {d} -l 192.0.2.1:0", 1, "cannot listen"),
    Bad("up -d {d} -l no.such.host.invalid:0", 1, "cannot listen"),
    Bad("start", 2, "give --config FILE or --data DIR"),
    Bad("start {missing}", 1, "cannot be read"),
    Bad("start {full}", 1, "is a directory"),
    Bad("start {binary}", 1),
    Bad("start --data {d} --listen here", 2),
    Bad("start --data {d} --listen 127.0.0.1:0 --set =x", 2, "NAME=VALUE"),
    Bad("start --data {d} --listen PLAINTEXT://..:0", 1, "is not the name of a host"),
    Bad("start --data {d} --log-level LOUD", 2, "--log-level"),
    Bad("start --data {file} --listen 127.0.0.1:0", 1),
    Bad("start --data {d} --listen 127.0.0.1:0 --set node.id=x", 1),
    Bad("format {missing}", 1),
    Bad("format {binary}", 1),
    Bad("format {good.properties} --cluster-id short --standalone", 1),
    Bad("format {good.properties} --feature nothing", 1),
    Bad("format {good.properties} --release-version 0.1", 1),
    Bad("format {good.properties} --initial-controllers junk --cluster-id 4L6g3nShT-eMCtK--X86sw", 1),
    Bad("registry -l here", 2, "is not HOST:PORT"),
    Bad("registry -l :80000", 2, "ports go from 0 to 65535"),
    Bad("registry --session-timeout soon", 2, "--session-timeout"),
    Bad("registry -b nowhere:x", 2, "--bootstrap"),
    Bad(f"registry -l {LONG}:0", 2, "is not the name of a host"),
    Bad("registry --advertise http://[::1", 2, "--advertise"),
    Bad("registry --advertise host:8081", 2, "--advertise"),
    Bad("registry --advertise ''", 2, "--advertise"),
    Bad("registry --peer junk", 2, "--peer"),
    Bad("registry --peer http://h:99999", 2, "--peer"),
    Bad("demo --orders 5", 2),
    Bad("demo -l here", 2, "is not HOST:PORT"),
    Bad("demo --registry here", 2, "is not HOST:PORT"),
    Bad("demo -d {file}", 1),
    Bad("produce '' v", 2, "empty"),
    Bad("produce t v -b host:port", 2, "--bootstrap"),
    Bad("produce t v -b ''", 2, "--bootstrap"),
    Bad("produce t v -b [::1", 2, "--bootstrap"),
    Bad("produce t v -b 'a b'", 2, "is not the name of a host"),
    Bad("produce t v -b host,..:9092", 2, "is not the name of a host"),
    Bad(f"produce t v -b {LONG}", 2, "is not the name of a host"),
    Bad("produce t v -p -1", 2),
    Bad("produce t v -H nothing", 2, "NAME=VALUE"),
    Bad("produce t v --acks 2", 2),
    Bad("produce t v -z brotli", 2),
    Bad("produce t -K ''", 2, "empty"),
    Bad("produce t v -F xml", 2),
    Bad("produce t v --value thrift", 2),
    Bad("produce t v --value avro --registry ftp://x", 2, "--registry"),
    Bad("produce t v --value avro --registry http://h:99999", 2, "--registry"),
    Bad("consume t --value avro --registry http://h:abc", 2, "--registry"),
    Bad("consume t --from-beginning --last 3", 2, "give only one of"),
    Bad("consume t --since soon", 2, "--since"),
    Bad("consume t --from-timestamp soon", 2, "--from-timestamp"),
    Bad("consume t -o -1", 2),
    Bad("consume t -n -1", 2),
    Bad("consume t -F template", 2, "--template"),
    Bad("consume t -t 'x{nope}'", 2, "no field"),
    Bad("consume t -g g -p 0", 2, "a group decides"),
    Bad("sql ''", 1, "empty"),
    Bad("sql 'select 1' --registry ftp://x", 2, "--registry"),
    Bad("sql 'select 1' --registry http://h:99999", 2, "--registry"),
    Bad("sql 'select 1' --registry http://[::1", 2, "--registry"),
    Bad("sql 'select 1' --max 0", 2),
    Bad("cluster elect --unclean", 2),
    Bad("cluster elect junk", 2, "TOPIC:PARTITION"),
    Bad("cluster reassign junk", 2),
    Bad("cluster reassign -f {missing}", 1),
    Bad("cluster reassign -f {binary}", 1),
    Bad("cluster reassign -f {good.avsc}", 1),
    Bad("cluster reassign", 2),
    Bad("cluster balance --capacity junk", 2, "BROKER=SHARE"),
    Bad("cluster balance --capacity 1=-1", 2),
    Bad("cluster balance --throttle lots", 2),
    Bad("cluster balance --at-once 0", 2),
    Bad("cluster drain me", 2),
    Bad("cluster add-broker -d {missing}", 1, "holds no local cluster"),
    Bad("cluster add-broker --id -1", 2),
    Bad("cluster add-broker --listen here:x", 2, "is not HOST:PORT"),
    Bad("cluster add-broker --listen junk", 2, "is not HOST:PORT"),
    Bad("cluster add-broker --listen :9999", 2, "is not HOST:PORT"),
    Bad("cluster add-voter 2 --listen junk", 2, "is not HOST:PORT"),
    Bad("cluster features junk", 2),
    Bad("cluster features metadata.version=high", 2),
    Bad("topic create t -p 0.5", 2),
    Bad("topic create t -c nothing", 2, "NAME=VALUE"),
    Bad("topic delete __consumer_offsets --yes", 2, "--internal"),
    Bad("topic delete t", 1, "not a terminal"),
    Bad("topic delete-records t", 2, "give one of"),
    Bad("topic delete-records t --before-time soon", 2),
    Bad("topic alter t", 2, "nothing to change"),
    Bad("config get planet x", 2),
    Bad("config get broker me", 2, "is not a broker id"),
    Bad("config set topic t", 2, "nothing to change"),
    Bad("config set topic t junk", 2, "NAME=VALUE"),
    Bad("schema register s {missing}", 2),
    Bad("schema register s {missing.avsc}", 1),
    Bad("schema register s {binary.avsc}", 1, "not text in UTF-8"),
    Bad("schema register s {good.avsc} --ref junk", 2, "NAME=SUBJECT:VERSION"),
    Bad("schema register s {good.avsc} -u ftp://x", 2, "--registry"),
    Bad("schema list -u http://h:99999", 2, "--registry"),
    Bad("schema list -u http://h:0", 2, "--registry"),
    Bad("schema list -u :abc", 2, "--registry"),
    Bad("schema list -u http://[::1", 2, "--registry"),
    Bad("schema list -u 'http://a b:8081'", 2, "--registry"),
    Bad("schema list -u http://..:8081", 2, "--registry"),
    Bad("schema list -u http://h/ü", 2, "--registry"),
    Bad(f"schema list -u http://{LONG}:8081", 2, "--registry"),
    Bad("schema register '' {good.avsc}", 2, "the name of the subject is empty"),
    Bad("schema show ''", 2, "the name of the subject is empty"),
    Bad("share consume '' -g g", 2, "the name of the topic is empty"),
    Bad("schema show", 2, "give a subject or --id"),
    Bad("schema show s -t -k", 2, "exclude each other"),
    Bad("group list --type banana", 2),
    Bad("group reset-offsets g", 2, "say where to"),
    Bad("group reset-offsets g --to sideways", 2),
    Bad("group reset-offsets g --back soon", 2),
    Bad("share consume t", 2, "--group"),
    Bad("share consume t -g g -n -1", 2),
    Bad("share consume t -g g --accept --reject", 2, "give only one of"),
    Bad("dlq redrive t", 2, "say which letters"),
    Bad("dlq list t --letter five", 2),
    Bad("dlq list t --reason bored", 2),
    Bad("txn list --running soon", 2),
    Bad("txn abort", 2),
    Bad("txn abort --partition junk --start-offset 0", 2),
    Bad("pipeline check {missing}", 1),
    Bad("pipeline check {binary}", 1),
    Bad("pipeline run {missing}", 1),
    Bad("pipeline run {full}", 1),
    Bad("pipeline run {missing} --registry http://h:99999", 2, "--registry"),
    Bad("pipeline check {missing} --registry ftp://x", 2, "--registry"),
    Bad("log dump {missing}", 1),
    Bad("log dump {binary}", 1),
    Bad("log dump {full}", 1),
    Bad("log verify {missing}", 1),
    Bad("log verify {file}", 1),
    Bad("wire show Nope", 1),
    Bad("wire show Produce 999", 1),
    Bad("wire show Produce 9 sideways", 2),
    Bad("wire list --nope", 2),
]

# What the broker or the registry refuses.
REFUSED = [
    Bad("produce 'bad topic' x", 1, "Topic name is invalid"),
    Bad("produce t v -p 99", 1, "there is no 99"),
    Bad("produce t -F json", 1, "there is no field 'a'", '{"a":1}\n'),
    Bad("produce t -F json", 1, "it has no value", '{"key":"k"}\n'),
    Bad("produce t -F json", 1, "not JSON", "{\n"),
    Bad("produce t -F json", 1, "a record is a JSON object", "[]\n"),
    Bad("produce t -F json", 1, "", '{"value_base64":"%"}\n'),
    Bad("produce t -K :", 1, "between key and value", "plain\n"),
    Bad("produce t -f {missing}", 1),
    Bad("produce t -f {full}", 1),
    Bad("produce t {} --value avro", 1, "subject t-value"),
    Bad("consume nosuch", 1, "there is no topic"),
    Bad("consume 'bad topic'", 1),
    Bad("consume t -p 99", 1, "there is no 99"),
    Bad("consume t -o 99", 1),
    Bad("consume nosuch -g g", 1),
    Bad("sql \"select * from topic('nosuch')\" --registry off", 1),
    Bad("sql \"select offset from topic('t')\" --registry off", 1),
    Bad("sql 'selec 1' --registry off", 1),
    Bad("sql \"select * from topic('t', nope := '1')\" --registry off", 1, "no option nope"),
    Bad("sql \"select * from topic('t', since := 'soon')\" --registry off", 1),
    Bad("cluster elect nosuch:0", 1),
    Bad("cluster reassign nosuch:0=1", 1),
    Bad("cluster reassign t:0=99", 1),
    Bad("cluster drain 99", 1, "there is no broker 99"),
    Bad("cluster drain 1 --execute", 1),
    Bad("cluster remove-broker 99", 1),
    Bad("cluster balance --capacity 99=1", 1),
    Bad("cluster add-broker --listen 127.0.0.1:9999 --id 1", 1, "already"),
    Bad("cluster add-broker --listen 127.0.0.1:9999", 1, "no controller says where"),
    Bad("cluster add-voter 99", 1),
    Bad("cluster remove-voter 99", 1),
    Bad("cluster features nosuch=1", 1),
    Bad("cluster features metadata.version=999", 1),
    Bad("topic create t", 1, "TOPIC_ALREADY_EXISTS"),
    Bad("topic create 'bad topic'", 1),
    Bad("topic create x -r 3", 1),
    Bad("topic create x -c retention.ms=soon", 1),
    Bad("topic create x -c no.such.setting=1", 1),
    Bad("topic describe nosuch", 1),
    Bad("topic alter t retention.ms=soon", 1),
    Bad("topic alter nosuch retention.ms=1", 1),
    Bad("topic delete nosuch --yes", 1),
    Bad("topic add-partitions t 1", 1),
    Bad("topic add-partitions nosuch 3", 1),
    Bad("topic delete-records t --before-offset 99", 1),
    Bad("topic delete-records nosuch --all", 1),
    Bad("topic delete-records t --all -p 99", 1),
    Bad("config get topic nosuch", 1),
    Bad("config get topic t no.such.setting", 1),
    Bad("config get broker 99", 1),
    Bad("config set topic nosuch retention.ms=1", 1),
    Bad("config set broker 1 log.dirs=/x", 1),
    Bad("config set broker-logger 1 a.b=LOUD", 1),
    Bad("schema register s {file} --type avro", 1),
    Bad("schema show nosuch", 1),
    Bad("schema show --id 999", 1),
    Bad("schema show s 99", 1),
    Bad("schema diff nosuch", 1),
    Bad("schema check nosuch {missing.avsc}", 1),
    Bad("schema delete nosuch", 1),
    Bad("schema delete s 99", 1),
    Bad("group describe nosuch", 1),
    Bad("group reset-offsets g --to earliest -t nosuch", 1),
    Bad("group reset-offsets g --to earliest -t t:99", 1),
    Bad("group delete nosuch", 1),
    Bad("group delete-offsets nosuch -t t", 1),
    Bad("share describe nosuch", 1),
    Bad("share delete nosuch", 1),
    Bad("share consume nosuch -g g", 1),
    Bad("dlq list nosuch", 1),
    Bad("dlq redrive t --letter 0:99", 1, "there is no letter"),
    Bad("txn describe nosuch", 1),
    Bad("txn abort nosuch", 1),
    Bad("txn abort --partition t:0 --start-offset 0", 1),
    Bad("pipeline status nosuch", 1),
    Bad("pipeline stop nosuch", 1),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("node") / "data") as running:
        env = {"OTTLA_BOOTSTRAP": running.bootstrap, "OTTLA_REGISTRY": running.registry.url}
        assert invoke("topic", "create", "t", "-p", "2", env=env).code == 0
        schema = '{"type": "record", "name": "S", "fields": []}'
        assert invoke("schema", "register", "s", "-", stdin=schema, env=env).code == 0
        yield running


def run(bad: Bad | str, directory: Path, env: dict[str, str]) -> Run:
    words, stdin = (bad, "") if isinstance(bad, str) else (bad.words, bad.stdin)
    return invoke(*(_path(word, directory) for word in shlex.split(words)), stdin=stdin, env=env)


def _path(word: str, directory: Path) -> str:
    """`{name}` is a path below the directory, with the content that the name promises."""
    if not word.startswith("{") or "}" not in word[2:]:
        return word
    name, _, rest = word[1:].partition("}")
    path = directory / name
    if name == "full":
        path.mkdir(exist_ok=True)
        (path / "photo.jpg").write_text("mine")
    elif name == "file":
        path.write_text("nothing\n")
    elif name.startswith("binary"):
        path.write_bytes(os.urandom(64) + b"\x00\xff\xfe")
    elif name == "good.avsc":
        path.write_text(json.dumps({"type": "record", "name": "S", "fields": []}))
    elif name == "good.properties":
        path.write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={directory / 'formatted'}\n"
            "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        )
    return f"{path}{rest}"


def check(found: Run, code: int, told: str) -> None:
    """One line for the error (or for each partition that failed), and behind it a line with a hint."""
    lines = [line for line in found.err.splitlines() if not line.startswith("warning: ")]
    assert found.code == code, f"exit code {found.code}\n{found.out}\n{found.err}"
    assert "Traceback" not in found.err
    while lines and not lines[0].startswith("error: "):
        del lines[0]  # what was planned, or said before
    assert lines and len(lines) % 2 == 0, found.err
    assert all(line.startswith("error: ") for line in lines[::2]) and told in lines[0], found.err
    assert all(line.startswith("hint: ") for line in lines[1::2]), found.err


def test_every_command_is_in_the_table() -> None:
    commands = [path.removeprefix("ottla ") for path, _ in every_command()]
    assert list(VALID) == commands or set(VALID) == set(commands)
    first_words = [tuple(shlex.split(bad.words)) for bad in (*USAGE, *REFUSED)]
    for command, words in VALID.items():
        count = command.count(" ") + 1
        tried = [each for each in first_words if each[:count] == tuple(command.split())]
        assert tried or words is not None, f"nothing is tried with {command}"
    assert len(USAGE) + len(REFUSED) + 2 * sum(words is not None for words in VALID.values()) > 250


@pytest.mark.parametrize("bad", USAGE, ids=lambda bad: bad.words)
def test_usage(bad: Bad, tmp_path: Path) -> None:
    found = run(bad, tmp_path, {"OTTLA_BOOTSTRAP": NOBODY})
    if bad.words == "topic":
        assert "Usage: " in found.out + found.err
    else:
        check(found, bad.code, bad.told)


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: f"{bad.words} {bad.stdin}")
def test_refused(bad: Bad, tmp_path: Path, broker: EmbeddedBroker) -> None:
    env = {"OTTLA_BOOTSTRAP": broker.bootstrap, "OTTLA_REGISTRY": broker.registry.url}
    check(run(bad, tmp_path, env), bad.code, bad.told)


@pytest.mark.parametrize("words", [words for words in VALID.values() if words is not None])
def test_nobody_answers_and_no_such_address(words: str, tmp_path: Path) -> None:
    env = {"OTTLA_BOOTSTRAP": NOBODY, "OTTLA_REGISTRY": f"http://{NOBODY}"}
    check(run(words, tmp_path, env), 1, NOBODY)
    option = "-u ftp://x" if words.startswith("schema") else "-b :x"
    check(run(f"{words} {option}", tmp_path, env), 2, "--registry" if words.startswith("schema") else "--bootstrap")
