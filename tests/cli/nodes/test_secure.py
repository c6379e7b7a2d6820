"""`ottla up --secure`: who has the printed settings gets in, with any client, and nobody else; restarts keep it."""

from __future__ import annotations

import asyncio
import http.client
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from tests.cli.conftest import Run, invoke
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.local_cluster import LocalCluster
from tests.support.waiting import until

from ottla.cli.nodes.local_cluster import define, define_broker, found_nodes
from ottla.cli.nodes.own_login import check_own_login
from ottla.cli.nodes.secure_clients import SecureClients
from ottla.cli.nodes.secure_files import SecureFiles
from ottla.cli.profile.files import read_command_config
from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import AuthenticationError, ClientError
from ottla.client.security.registry_settings import registry_security
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError
from ottla.security.certificate_facts import read_certificates
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.certificates import PemPair, issue

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secure") / "data"


@pytest.fixture(scope="module")
def local(directory: Path) -> Iterator[LocalCluster]:
    """One node with its registry."""
    cluster = LocalCluster(directory, "--secure", "--registry", "127.0.0.1:0")
    cluster.wait_for("Schema registry at https://127.0.0.1:")
    yield cluster
    assert cluster.stop() == 0


def admin_file(directory: Path) -> Path:
    return directory / "secure" / "client.properties"


def ottla(directory: Path, *words: str, code: int = 0) -> Run:
    done = invoke("--command-config", str(admin_file(directory)), *words)
    assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
    return done


def librdkafka(directory: Path, **more: str) -> dict[str, str]:
    lines = (directory / "secure" / "librdkafka.properties").read_text().splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name: value for name, _, value in pairs} | {name.replace("_", "."): value for name, value in more.items()}


@contextmanager
def registry_client(directory: Path, **other: str) -> Iterator[SchemaRegistryClient]:
    """confluent-kafka's client with the settings that were written for it, and others."""
    lines = (directory / "secure" / "registry-client.properties").read_text().splitlines()
    settings = {name: value for name, _, value in (line.partition("=") for line in lines)}
    client = SchemaRegistryClient({**settings, **{name.replace("_", "."): value for name, value in other.items()}})
    try:
        yield client
    finally:
        client.close()


def ours(directory: Path) -> Blocking:
    found = read_command_config(admin_file(directory))
    assert found.bootstrap is not None
    return Blocking(found.bootstrap, security=found.security)


def round_trip(directory: Path, topic: str) -> None:
    """Each client writes, and reads what both have written."""
    producer = Producer(librdkafka(directory))
    producer.produce(topic, b"by librdkafka")
    assert producer.flush(30) == 0
    with ours(directory) as client:
        client.send(topic, b"by ottla")
        assert sorted(record.value or b"" for record in client.read(topic)) == [b"by librdkafka", b"by ottla"]
    consumer = Consumer(librdkafka(directory, group_id="g", auto_offset_reset="earliest"))
    consumer.subscribe([topic])
    found: set[bytes] = set()
    try:
        while len(found) < 2:
            record = consumer.poll(30)
            assert record is not None and record.error() is None, record
            found.add(record.value())
    finally:
        consumer.close()


def test_the_settings_that_were_printed_let_clients_in(local: LocalCluster, directory: Path) -> None:
    ottla(directory, "topic", "create", "t")
    round_trip(directory, "t")
    assert {"t", "_schemas"} <= {each["topic"] for each in ottla(directory, "topic", "list", "--json").json}
    assert [each["user"] for each in ottla(directory, "user", "list", "--json").json] == ["admin", "node"]


def test_what_was_printed_for_python_is_python(local: LocalCluster, directory: Path) -> None:
    """As it is copied from the terminal: with the address, and with the place of the password and not itself."""
    (line,) = (each for each in local.lines if each.startswith("Python "))
    password = (directory / "secure" / "admin.password").read_text().strip()
    assert password not in line
    with eval(line.partition(" ")[2].strip(), {"Blocking": Blocking}) as client:
        client.send("typed", b"from Python")
        assert [record.value for record in client.read("typed")] == [b"from Python"]
    told = " ".join(
        each.strip() for each in local.lines if "=" in each and each.startswith(("aiokafka ", "          s"))
    )
    given = eval(f"dict({told.removeprefix('aiokafka').strip()})", {"create_ssl_context": create_ssl_context})
    given["sasl_plain_password"] = password

    async def written() -> int:
        async with AIOKafkaProducer(bootstrap_servers=local.bootstrap, **given) as producer:
            return int((await producer.send_and_wait("typed", b"from aiokafka")).offset)

    assert asyncio.run(written()) == 1


def test_the_registry_takes_the_same_users(local: LocalCluster, directory: Path) -> None:
    with registry_client(directory) as client:
        client.register_schema("orders-value", Schema(ORDER, "AVRO"))
        assert client.get_subjects() == ["orders-value"]
    assert ottla(directory, "schema", "list", "--json").json[0]["subject"] == "orders-value"
    distrustful = directory / "distrustful.properties"
    lines = admin_file(directory).read_text().splitlines()
    distrustful.write_text("\n".join(line for line in lines if not line.startswith("schema.registry.ssl.")))
    refused = invoke("--command-config", str(distrustful), "schema", "list")
    assert refused.code == 1 and "is not trusted: its certificate is" in refused.err
    assert "hint: schema.registry.ssl.truststore.location" in refused.err
    ottla(directory, "topic", "create", "orders")
    ottla(directory, "produce", "orders", '{"id": 7}', "--value", "avro")
    assert ottla(directory, "consume", "orders", "--value", "avro").out.rstrip().endswith('{"id":7}')
    # Somebody else is known by the cluster's passwords, and may do what the ACLs of topics allow.
    password = directory / "alice.password"
    password.write_text("alice-secret")
    ottla(directory, "user", "add", "alice", "--password-file", str(password))
    with registry_client(directory, basic_auth_user_info="alice:alice-secret") as alice:
        until(lambda: alice.get_subjects() == [])
        ottla(directory, "acl", "add", "alice", "--consumer", "--topic", "orders", "--group", "g")
        until(lambda: alice.get_subjects() == ["orders-value"])
        with pytest.raises(SchemaRegistryError) as refused:
            alice.register_schema("orders-value", Schema(ORDER.replace("long", "int"), "AVRO"))
    assert refused.value.http_status_code == 403


def test_nobody_else_gets_into_the_registry(local: LocalCluster, directory: Path) -> None:
    with (
        registry_client(directory, basic_auth_user_info="admin:guess") as guessing,
        pytest.raises(SchemaRegistryError) as refused,
    ):
        guessing.get_subjects()
    assert refused.value.http_status_code == 401
    url = read_command_config(admin_file(directory)).registry
    assert url is not None and url.startswith("https://")
    trusting = ssl.create_default_context(cafile=directory / "secure" / "ca.pem")
    with pytest.raises(urllib.error.HTTPError) as anonymous:
        urllib.request.urlopen(f"{url}/subjects", context=trusting)
    with anonymous.value:
        assert anonymous.value.code == 401
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"{url}/subjects")  # an authority that nobody else trusts
    with pytest.raises((OSError, http.client.HTTPException)):
        urllib.request.urlopen(f"http{url.removeprefix('https')}/subjects")
    told = ottla(directory, "schema", "list", "-u", f"http{url.removeprefix('https')}", code=1).err
    assert "does it speak https? --registry https://" in told
    told = ottla(directory, "schema", "list", "-u", url.replace("://", "://eve:guess@"), code=1).err
    assert "refuses the login of user eve" in told and "guess" not in told
    nobody = directory / "nobody.properties"
    lines = admin_file(directory).read_text().splitlines()
    nobody.write_text("\n".join(line for line in lines if not line.startswith("basic.auth.")))
    told = invoke("--command-config", str(nobody), "schema", "list").err
    assert f"the registry at {url} refuses a request without a login" in told and "basic.auth.user.info" in told


@pytest.mark.compat
def test_kafkas_own_tools(java_commands: JavaServer, local: LocalCluster, directory: Path) -> None:
    words = ["--bootstrap-server", local.bootstrap, "--command-config", str(admin_file(directory)), "--list"]
    answer = java_commands.ask({"main": "org.apache.kafka.tools.TopicCommand", "args": words})
    assert answer["code"] == 0 and "t" in answer["out"].split(), answer


def test_files_of_the_folder_are_for_their_owner(local: LocalCluster, directory: Path) -> None:
    folder = directory / "secure"
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes.pop("ca.pem") == 0o644
    assert set(modes.values()) == {0o600} and "ca.key" in modes and "admin.password" in modes
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (directory / "node-1.properties").stat().st_mode & 0o777 == 0o600
    for data in (directory, directory / "node-1"):
        assert data.stat().st_mode & 0o777 == 0o700, "the metadata log has the keys of users"


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    define(data, 1, None, ("127.0.0.1", 0), secure=True)
    assert data.stat().st_mode & 0o777 == 0o755
    assert (data / "node-1").stat().st_mode & 0o777 == 0o700
    define_broker(data)
    assert (data / "node-2").stat().st_mode & 0o777 == 0o700


def test_data_of_a_plain_node_is_not_made_secure(tmp_path: Path) -> None:
    data = tmp_path / "plain"
    with EmbeddedBroker(data):
        pass
    told = invoke("up", "--secure", "--data", str(data), "--listen", "127.0.0.1:0")
    assert told.code == 1 and "cannot be made secure in place" in told.err and f"--data {data}-secure" in told.err


def test_nobody_else_gets_in(local: LocalCluster, directory: Path) -> None:
    guess = dict(librdkafka(directory), **{"sasl.password": "guess"})
    del guess["bootstrap.servers"]
    with Blocking(local.bootstrap, security=guess) as client, pytest.raises(AuthenticationError, match="credentials"):
        list(client.read("t"))
    with Blocking(local.bootstrap) as client, pytest.raises(ClientError):
        list(client.read("t"))
    found = dict(read_command_config(admin_file(directory)).security)
    for missing in ("ssl.truststore.location", "ssl.truststore.type"):
        found.pop(missing)
    with Blocking(local.bootstrap, security=found) as client, pytest.raises(ClientError, match="certificate"):
        list(client.read("t"))


def test_a_certificate_of_the_authority_is_no_node(local: LocalCluster, directory: Path) -> None:
    """A user's certificate reaches the listener of controllers, and has no rights there."""
    assert (
        invoke("tls", "issue", "node-7", "--client", "--host", "localhost", "--dir", str(directory / "secure")).code
        == 0
    )
    at = local.nodes()[1].controller_address
    store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(directory / "secure" / "ca.pem")}
    security = {"security.protocol": "SSL", "ssl.keystore.type": "PEM", **store}
    own = {"ssl.keystore.location": str(directory / "secure" / "node-7.pem")}
    node = {"ssl.keystore.location": str(directory / "secure" / "node-1.pem")}

    def quorum(**more: str) -> Run:
        path = directory / "secure" / "quorum.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in (security | more).items()))
        return invoke("--command-config", str(path), "cluster", "quorum", "-b", at)

    assert "CLUSTER_AUTHORIZATION_FAILED" in quorum(**own).err
    assert quorum(**node).code == 0


def test_the_user_of_the_nodes_stays(local: LocalCluster, directory: Path) -> None:
    refused = ottla(directory, "user", "remove", "node", "--yes", code=1).err
    assert "the brokers of `ottla up --secure` log in to each other as user node" in refused and "--force" in refused
    ottla(directory, "user", "remove", "node", "-m", "SCRAM-SHA-256", "--yes", code=1)
    password = directory / "np"
    password.write_text("another one")
    refused = ottla(directory, "user", "passwd", "node", "--password-file", str(password), code=1).err
    assert "could not any more: nothing was done" in refused and "--force" in refused
    (node,) = found_nodes(directory)
    files = SecureFiles(directory)
    check_own_login(node, files, "client.properties")
    wrong = {name: value.replace('password="', 'password="not-') for name, value in node.values.items()}
    with pytest.raises(CommandError, match="cannot log in to each other as user node") as told:
        check_own_login(node._replace(values=wrong), files, "client.properties")
    assert f"user add node --password-file {directory}/secure/node.password" in str(told.value.hint)


def test_the_same_again_after_a_restart(local: LocalCluster, directory: Path) -> None:
    shown = "\n".join(local.lines)
    password = (directory / "secure" / "admin.password").read_text().strip()
    assert len(password) >= 32 and shown.count(password) == 1
    former = {path.name: path.read_bytes() for path in (directory / "secure").iterdir()}
    assert local.stop() == 0
    again = LocalCluster(directory, "--registry", "off")  # the files decide: it stays secure
    try:
        until(lambda: any("kafka-topics" in each for each in again.lines))
        assert password not in "\n".join(again.lines)
        assert {path.name: path.read_bytes() for path in (directory / "secure").iterdir()} == former
        assert "t" in ottla(directory, "topic", "list").out
    finally:
        assert again.stop() == 0


def test_another_password_of_the_administrator(tmp_path: Path) -> None:
    """As the warnings say: into its file, the files that had it are deleted, and the next start writes them anew."""
    local = LocalCluster(tmp_path, "--secure")
    file = tmp_path / "secure" / "admin.password"
    changed = tmp_path / "secure" / "changed"
    changed.write_text("a new one\n")
    try:
        told = ottla(tmp_path, "user", "passwd", "admin", "--password-file", str(changed)).err
        assert f"{admin_file(tmp_path)} logs in as user admin with the former password" in told
        assert f"write it into {file} and delete client.properties, librdkafka.properties" in told
    finally:
        assert local.stop() == 0
    local = LocalCluster(tmp_path)
    try:
        assert any(f"user admin has another password than {file} says" in each for each in local.lines)
        assert invoke("--command-config", str(admin_file(tmp_path)), "topic", "list").code == 1
    finally:
        assert local.stop() == 0
    changed.rename(file)
    for name in ("client.properties", "librdkafka.properties"):
        (tmp_path / "secure" / name).unlink()
    local = LocalCluster(tmp_path)
    try:
        local.wait_for("Ctrl-C stops it")
        assert not any("warning" in each for each in local.lines)
        ottla(tmp_path, "topic", "list")
    finally:
        assert local.stop() == 0


def test_a_plaintext_cluster_does_not_become_secure(tmp_path: Path) -> None:
    define(tmp_path, 1, None, ("127.0.0.1", 0))
    told = invoke("up", "--secure", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert told.code == 1 and "holds a cluster without security" in told.err


def test_a_profile_is_added_to_those_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.client.profiles import profiles_path, read_profiles

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = profiles_path()
    path.parent.mkdir(parents=True)
    path.write_text('[mine]\nbootstrap = "here:1"\n')
    clients = SecureClients(SecureFiles(tmp_path), "127.0.0.1:9092", "https://127.0.0.1:8081")
    clients.save_profile("secure")
    found = read_profiles(path)
    assert list(found) == ["mine", "secure"] and found["mine"].bootstrap == "here:1"
    assert found["secure"].security["sasl.password"] == f"file:{tmp_path / 'secure' / 'admin.password'}"
    access = registry_security(found["secure"].registry_security, found["secure"].security)
    assert found["secure"].registry == "https://127.0.0.1:8081" and access.auth is not None
    password = SecureFiles(tmp_path).password("admin")  # made now: a profile is read before its secrets are there
    assert access.auth.reveal() == f"admin:{password}"
    text = path.read_text()
    clients.save_profile("secure")
    assert path.read_text() == text


def test_certificates_are_made_anew_in_time(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    from ottla.cli.nodes.up_cluster import UpCluster

    (node,) = define(tmp_path, 1, None, ("127.0.0.1", 0), secure=True)
    path = tmp_path / "secure" / "node-1.pem"

    def started() -> bytes:
        UpCluster(tmp_path, None, None, ("127.0.0.1", 0), [], "here", None, secure=True)
        return path.read_bytes()

    good = path.read_bytes()
    assert started() == good
    authority = PemPair(*((tmp_path / "secure" / name).read_text() for name in ("ca.pem", "ca.key")))
    hosts = read_certificates(good)[0].hosts
    now = datetime.now(UTC)
    soon = issue(authority, "node-1", hosts, now, client=True, unit="ottla-nodes", valid_for=timedelta(days=29))
    path.write_text(soon.text)
    renewed = started()
    assert renewed.decode() != soon.text and read_certificates(renewed)[0].days_left(now) > 300
    # Another address, by hand: the certificate has to name it.
    node.path.write_text(node.path.read_text().replace("SASL_SSL://127.0.0.1", "SASL_SSL://127.0.0.9"))
    assert "127.0.0.9" in read_certificates(started())[0].hosts
    # A certificate of the operator's own is left alone.
    own = tmp_path / "own.pem"
    own.write_text("mine")
    node.path.write_text(re.sub("ssl.keystore.location=.*", f"ssl.keystore.location={own}", node.path.read_text()))
    path.unlink()
    UpCluster(tmp_path, None, None, ("127.0.0.1", 0), [], "here", None)
    assert own.read_text() == "mine" and not path.exists()


def test_no_password_and_no_authority_is_invented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node,) = define(tmp_path, 1, None, ("127.0.0.1", 0), secure=True)
    files = SecureFiles(tmp_path)
    SecureClients(files, node.address).write()
    for user, source in (("admin", files.folder / "client.properties"), ("node", node.path)):
        path = files.password_file(user)
        former = path.read_text()
        path.unlink()
        files.restore()
        assert path.read_text() == former and path.stat().st_mode & 0o777 == 0o600
        assert f"{path} was missing: it is restored from {source}" in capsys.readouterr().err
    (files.folder / "client.properties").unlink()
    files.password_file("admin").unlink()
    told = invoke("up", "--data", str(tmp_path))
    assert told.code == 1 and "admin.password is missing, and no settings here have the password" in told.err
    assert not files.password_file("admin").exists()
    files.password_file("admin").write_text("known\n")
    (files.folder / "ca.pem").unlink()
    told = invoke("up", "--data", str(tmp_path))
    assert told.code == 1 and "ca.pem is missing" in told.err and "node-1.pem" in told.err
    for name in ("ca.key", "node-1.pem"):  # as the hint says
        (files.folder / name).unlink()
    files.restore()
    files.renew(1, node.values)
    assert (files.folder / "node-1.pem").exists()


def test_a_property_file_is_written_anew_as_the_hint_says(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (node,) = define(data, 1, None, ("127.0.0.1", free_ports(1)[0]), secure=True)
    former = node.path.read_text()
    node.path.unlink()
    told = invoke("up", "--data", str(data), "--secure")
    assert told.code == 1 and f"move {data}/node-1 out of {data}" in told.err
    (data / "node-1").rename(tmp_path / "kept")
    define(data, 1, None, host_and_port(node.address), secure=True)
    assert node.path.read_text() == former


def test_listening_everywhere(tmp_path: Path) -> None:
    """Brokers advertise a name that the certificate has; controllers stay on loopback."""
    (node,) = define(tmp_path, 1, None, ("0.0.0.0", 0), secure=True)
    assert node.address.startswith("0.0.0.0:") and node.controller_address.startswith("127.0.0.1:")
    host = node.told_address.rpartition(":")[0]
    assert host in read_certificates((tmp_path / "secure" / "node-1.pem").read_bytes())[0].hosts
    second = define_broker(tmp_path)
    assert second.is_secure and second.values["ssl.keystore.location"].endswith("node-2.pem")


@pytest.mark.slow
def test_three_brokers_and_one_more(tmp_path: Path) -> None:
    """Nodes authenticate to each other: followers are in sync, and a fourth broker joins."""
    directory = tmp_path / "data"
    cluster = LocalCluster(directory, "--secure", "--brokers", "3")
    try:
        ottla(directory, "topic", "create", "t", "--partitions", "3")
        round_trip(directory, "t")
        until(lambda: all(len(each["isr"]) == 3 for each in described(directory, "t")))
        assert "defined broker 4" in ottla(directory, "cluster", "add-broker", "--data", str(directory)).err
        until(lambda: is_healthy(directory, 4))
        assert [each.is_secure for each in found_nodes(directory)] == [True] * 4
        assert not [line for line in cluster.lines if "authent" in line.lower()], cluster.lines
    finally:
        cluster.stop()


def is_healthy(directory: Path, brokers: int) -> bool:
    status = invoke("--command-config", str(admin_file(directory)), "cluster", "status", "--json")
    return status.code == 0 and len(status.json["brokers"]) == brokers


def described(directory: Path, topic: str) -> list[dict[str, list[int]]]:
    found: list[dict[str, list[int]]] = ottla(directory, "topic", "describe", topic, "--json").json[0]["partitions"]
    return found
