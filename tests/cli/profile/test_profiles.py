"""Profiles and files of Kafka's properties: which address counts, who is warned, and that no secret is shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from ottla.cli.profile import chosen
from ottla.cli.profile.files import read_command_config
from ottla.testing.broker import EmbeddedBroker

SECRET = "correct horse battery"
PROFILES = f"""
[here]
bootstrap = "%(bootstrap)s"

[prod]
bootstrap = "prod.invalid:9093"
registry = "https://me:{SECRET}@registry.invalid"
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
"sasl.username" = "alice"
sasl.password = "{SECRET}"
basic.auth.user.info = "alice:{SECRET}"
"""
Write = Callable[..., dict[str, str]]


@pytest.fixture
def profiles(tmp_path: Path) -> Write:
    """Write the profiles; return the environment in which they are this user's."""
    chosen._warned.clear()

    def write(text: str = PROFILES, bootstrap: str = "", mode: int = 0o600) -> dict[str, str]:
        path = tmp_path / "ottla" / "profiles.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("%(bootstrap)s", bootstrap))
        path.chmod(mode)
        return {"XDG_CONFIG_HOME": str(tmp_path)}

    return write


def test_addresses_in_their_order(profiles: Write, ottla_broker: EmbeddedBroker) -> None:
    env = profiles(bootstrap=ottla_broker.bootstrap)
    nobody = {"OTTLA_BOOTSTRAP": "nobody.invalid:1"}

    def reaches(*words: str, **more: str) -> bool:
        return invoke(*words, env=env | more).code == 0

    assert reaches("--profile", "here", "topic", "list")
    assert reaches("topic", "list", "--profile", "here")  # behind the command, too
    assert reaches("topic", "list", "--profile=here")
    assert reaches("topic", "list", OTTLA_PROFILE="here")
    assert reaches("topic", "list", "--profile", "here", **nobody)  # who names a profile means it
    assert not reaches("topic", "list", OTTLA_PROFILE="here", **nobody)
    assert not reaches("topic", "list", "--profile", "here", "-b", "nobody.invalid:1")
    assert reaches("topic", "list", "-b", ottla_broker.bootstrap, OTTLA_PROFILE="here")


def test_a_file_of_kafkas_properties(tmp_path: Path, ottla_broker: EmbeddedBroker) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        f"bootstrap.servers={ottla_broker.bootstrap}\nrequest.timeout.ms=1000\nsecurity.protocol=PLAINTEXT\n"
    )
    assert invoke("topic", "list", "--command-config", str(path)).code == 0
    path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    run = invoke("topic", "list", "--command-config", str(path))
    assert run.code == 1 and "PLAIN needs a user and a password" in run.err
    path.write_text("sasl.mechanismus=PLAIN\n")
    assert "is it sasl.mechanisms?" in invoke("topic", "list", "--command-config", str(path)).err
    run = invoke("topic", "list", "--command-config", str(tmp_path / "none"))
    assert run.code == 1 and "cannot be read: No such file" in run.err
    run = invoke("topic", "list", "--command-config", str(path), "--profile", "here")
    assert run.code == 2 and "give one of --profile and --command-config" in run.err


def test_list_and_show_hide_secrets(profiles: Write) -> None:
    env = profiles()
    run = invoke("profile", "list", "--json", env=env)
    assert {row["profile"]: row["security"] for row in run.json} == {"here": "PLAINTEXT", "prod": "SASL_SSL"}
    shown = invoke("profile", "show", "prod", "--json", env=env).json
    assert shown["sasl.password"] == shown["basic.auth.user.info"] == "[hidden]" and shown["sasl.username"] == "alice"
    outputs = [
        invoke(*words, env=env) for words in (("profile", "show", "prod"), ("topic", "list", "--profile", "prod"))
    ]
    for each in (run, *outputs):
        assert SECRET not in each.out + each.err
    assert outputs[1].code == 1
    run = invoke("profile", "show", "nobody", env=env)
    assert run.code == 1 and "there is no profile nobody" in run.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[prod]\nboots = 'x'", "profile prod: boots: there is no such setting of a profile"),
        ("[prod]\nsasl.mechanismus = 'x'", "profile prod: sasl.mechanismus: there is no such security setting"),
        ("prod = 'x'", "prod is no table; a profile begins with [prod]"),
        ("[prod", "is not TOML"),
        ("[prod]\nsecurity.protocol = 'SASL_SSL'", "profile prod: sasl.mechanism is one of"),
        ("[other]", "there is no profile prod in"),
        ("[prod]", "profile prod is empty"),
        ("[prod]\nbootstrap = 5", "profile prod: bootstrap is a text: write it in quotes"),
        ("[prod]\nsasl.password = 5", "profile prod: sasl.password is a text: write it in quotes"),
    ],
)
def test_mistakes_are_one_line(profiles: Write, text: str, told: str) -> None:
    run = invoke("topic", "list", "--profile", "prod", env=profiles(text))
    assert run.code == 1 and told in run.err and len(run.err.splitlines()) == 2


BAD = f"""
[bad]
bootstrap = "elsewhere.invalid:9092"
boots = "x"
sasl.password = "{SECRET}"
"""


def test_a_bad_profile_leaves_the_others_alone(profiles: Write, ottla_broker: EmbeddedBroker) -> None:
    env = profiles(f"half = 'x'\n{PROFILES}{BAD}", bootstrap=ottla_broker.bootstrap)
    assert invoke("topic", "list", "--profile", "here", env=env).code == 0
    assert invoke("profile", "show", "here", env=env).code == 0
    for words in (["topic", "list", "--profile", "bad"], ["profile", "show", "bad"]):
        run = invoke(*words, env=env)
        error, hint = run.err.splitlines()
        assert run.code == 1 and "profile bad: boots: there is no such setting of a profile" in error
        assert hint.startswith("hint: ") and SECRET not in run.out + run.err
    assert "half is no table" in invoke("topic", "list", "--profile", "half", env=env).err


def test_the_list_says_which_profiles_are_bad(profiles: Write) -> None:
    env = profiles(f"{PROFILES}{BAD}[nameless]\nsecurity.protocol = 'SASL_SSL'\n")
    found = {row["profile"]: row["problem"] for row in invoke("profile", "list", "--json", env=env).json}
    assert found["here"] is found["prod"] is None
    assert found["bad"] == "boots: there is no such setting of a profile"
    assert found["nameless"].startswith("sasl.mechanism is one of")
    table = invoke("profile", "list", env=env)
    assert table.code == 0 and SECRET not in table.out + table.err
    assert table.lines[0].endswith("\tproblem") and any("there is no such setting" in line for line in table.lines)
    assert "problem" not in invoke("profile", "list", env=profiles()).out


def test_a_secret_of_a_bad_profile_is_one_that_others_can_read(profiles: Write) -> None:
    assert "chmod 600" in invoke("profile", "list", env=profiles(BAD, mode=0o644)).err


def test_bytes_that_are_not_utf_8(profiles: Write, tmp_path: Path) -> None:
    env = profiles()
    (tmp_path / "ottla" / "profiles.toml").write_bytes(b"[prod]\nbootstrap = 'caf\xe9'\n")
    run = invoke("topic", "list", "--profile", "prod", env=env)
    assert run.code == 1 and "is not TOML: byte 23 is 0xe9" in run.err and len(run.err.splitlines()) == 2


JAAS = "sasl.jaas.config=org.apache.kafka.common.security.%s required username='u' password='p';\n"
LOGIN = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("securty.protocol=SSL\n", "securty.protocol: there is no such setting; did you mean security.protocol?"),
        ("bootstap.servers=a:1\n", "did you mean bootstrap.servers?"),
        ("ssl_truststore_location=x\n", "did you mean ssl.truststore.location?"),
        ("-----BEGIN CERTIFICATE-----\nMIIB==\n-----END CERTIFICATE-----\n", "holds certificates or keys"),
        ("nothing\nhere\n", "no line of it is name=value"),
        ("# a comment\n", "no line of it is name=value"),
        ("a=caf\xe9\n", "byte 5 is 0xe9"),
        ("a=\\u12\n", "line 1: malformed"),
        (f"{LOGIN}sasl.username=x\n" + JAAS % "plain.PlainLoginModule", "sasl.username and sasl.jaas.config both say"),
        (LOGIN + JAAS % "scram.ScramLoginModule", "the login module of sasl.mechanism PLAIN is org.apache.kafka"),
        (LOGIN + JAAS % "plain.PlaneLoginModule", "the login module of sasl.mechanism PLAIN is org.apache.kafka"),
        (LOGIN, "PLAIN needs a user and a password"),
    ],
)
def test_mistakes_in_properties_are_one_line_with_their_file(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(text.encode("latin-1"))
    run = invoke("topic", "list", "--command-config", str(path))
    error, hint = run.err.splitlines()[-2:]
    assert run.code == 1 and told in error and error.startswith(f"error: {path}")
    assert hint.startswith("hint: ") and "--help" not in hint


def test_settings_of_other_clients_are_not_taken_for_mistyped_ones(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.controllers=a:1\nclient.id=x\nproducer.ssl.endpoint.identification.algorithm=\n"
        "admin.ssl.truststore.location=x\nauto.register.schemas=false\nsession.timeout.ms=5\n"
    )
    assert read_command_config(path).settings == {}


def test_a_file_that_others_can_read_is_warned_of(profiles: Write) -> None:
    def warned(text: str, mode: int) -> bool:
        chosen._warned.clear()
        return "chmod 600" in invoke("profile", "list", env=profiles(text, mode=mode)).err

    assert warned(PROFILES, 0o644) and warned(PROFILES, 0o640)
    assert not warned(PROFILES, 0o600)
    assert not warned(PROFILES.replace(SECRET, "").replace('"alice:"', '"env:A"').replace('""', '"file:b"'), 0o644)


def test_other_commands_work_without_the_profile(profiles: Write) -> None:
    assert invoke("profile", "list", env=profiles("") | {"OTTLA_PROFILE": "gone"}).code == 0
    assert os.environ.get("OTTLA_PROFILE") is None


def test_words_behind_two_dashes_stay_where_they_are() -> None:
    words = ["produce", "t", "--profile=p", "--", "--profile", "x"]
    assert chosen.hoisted(words) == ["--profile=p", "produce", "t", "--", "--profile", "x"]
