"""Keystores that Java's own keytool makes: a node says how one of type JKS is converted, and serves the result."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.compat.security.round_trips import our_round_trip
from tests.support import tools

from ottla.testing.broker import EmbeddedBroker

PASSWORD = "of the store"
SUBJECT = "CN=made by keytool"


@pytest.fixture(scope="module", autouse=True)
def keytool() -> None:
    tools.require(None if shutil.which("keytool") else "keytool, of a JDK, is not installed; run scripts/tools")


def run(command: list[str], directory: Path, *words: str) -> None:
    done = subprocess.run(
        [*command, *words], cwd=directory, capture_output=True, text=True, input="", check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def make(directory: Path, kind: str) -> dict[str, Path]:
    """A key with a certificate that it signed itself, and a truststore with that certificate; of Java's type `kind`."""
    stores = {name: directory / f"{name}.{kind.lower()}" for name in ("keystore", "truststore")}
    common = ("-storetype", kind, "-storepass", PASSWORD, "-alias", "node")
    names = ("-dname", SUBJECT, "-ext", "san=dns:localhost,ip:127.0.0.1", "-keyalg", "EC", "-keypass", PASSWORD)
    run(["keytool", "-genkeypair"], directory, "-keystore", str(stores["keystore"]), *common, *names)
    exported = directory / "node.crt"
    run(
        ["keytool", "-exportcert", "-rfc"],
        directory,
        "-keystore",
        str(stores["keystore"]),
        *common,
        "-file",
        str(exported),
    )
    shown = ("-noprompt", "-file", str(exported))
    run(["keytool", "-importcert"], directory, "-keystore", str(stores["truststore"]), *common, *shown)
    return stores


def settings_of(stores: dict[str, Path], kind: str) -> dict[str, str]:
    own = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    for name, path in stores.items():
        prefix = f"ssl.{name}"
        own |= {f"{prefix}.type": kind, f"{prefix}.location": str(path), f"{prefix}.password": PASSWORD}
    return own


def is_served(stores: dict[str, Path], directory: Path) -> None:
    """A node with these PKCS12 stores, and clients that trust the one of certificates, each with its own code."""
    settings = settings_of(stores, "PKCS12")
    trusted = {name: value for name, value in settings.items() if name.startswith("ssl.truststore")}
    with EmbeddedBroker(directory / "data", settings) as broker:
        our_round_trip(broker.bootstrap, "t", {"security.protocol": "SSL", **trusted})


def test_a_pkcs12_store_of_keytool_is_served(tmp_path: Path) -> None:
    is_served(make(tmp_path, "PKCS12"), tmp_path)


def test_the_command_that_a_node_tells_converts_a_jks_store(tmp_path: Path) -> None:
    """Of the keystore first, then of the truststore, as the node asks for them."""
    stores = make(tmp_path, "JKS")
    password = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    for name in ("keystore", "truststore"):
        kinds = {each: "JKS" if path.suffix == ".jks" else "PKCS12" for each, path in stores.items()}
        settings = settings_of(stores, "JKS") | {f"ssl.{each}.type": kind for each, kind in kinds.items()}
        with pytest.raises(Exception, match=f"ssl.{name}.location: .* is a JKS keystore; convert it: ") as refused:
            EmbeddedBroker(tmp_path / "data", settings).start()
        found = re.search(r"convert it: (keytool .*?-deststoretype PKCS12)", str(refused.value))
        assert found is not None
        run(shlex.split(found[1]), tmp_path, *password)
        stores[name] = (tmp_path / "store.p12").rename(tmp_path / f"{name}.p12")
    is_served(stores, tmp_path)
