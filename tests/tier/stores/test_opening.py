"""From a URL to a store: every kind can be made, the core needs no package, and nothing is asked before it must be."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.extras import ROOT, make_environment

from ottla.model.store_location import parse_store_location
from ottla.tier.stores.errors import StoreBroken
from ottla.tier.stores.opening import open_store
from ottla.tier.stores.patient import PatientObjectStore

CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_PROFILE",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/prefix?region=eu-central-1&style=virtual&sse=aws:kms&kms-key=arn:aws:kms:eu:1:key/a",
        "s3://bucket?endpoint=https://host:9000",
        "gs://bucket/prefix",
        "az://account/container/prefix",
        "az://account/container?endpoint=http://127.0.0.1:10000/account",
    ],
)
def test_clouds_are_opened_without_asking_them(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)

    async def main() -> None:
        store = await open_store(parse_store_location(url), random.Random(1))
        assert isinstance(store, PatientObjectStore)
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_authorities_that_is_none_is_told(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    url = f"s3://bucket?endpoint=https://host:9000&ca={path}"
    with pytest.raises(StoreBroken, match=r"s3://bucket: .*\(check ottla\.remote\.storage") as raised:
        asyncio.run(open_store(parse_store_location(url), random.Random(1)))
    assert "\n" not in str(raised.value)


CORE = """
import asyncio, random, sys
from ottla.model.store_location import parse_store_location
from ottla.tier.stores.errors import StoreBroken
from ottla.tier.stores.opening import open_store
async def main():
    store = await open_store(parse_store_location(f"file://{sys.argv[1]}/store"), random.Random(1))
    await store.put("a/b", b"kept")
    print(bytes(await store.read("a/b", 0, 4)).decode())
    await store.close()
    try:
        await open_store(parse_store_location("s3://bucket/prefix"), random.Random(1))
    except StoreBroken as error:
        print(error)
    print("obstore" in sys.modules)
asyncio.run(main())
"""


CLOUDS = """
import asyncio, random
from ottla.model.store_location import parse_store_location
from ottla.tier.stores.opening import open_store
async def main():
    for url in ("s3://bucket/a?region=x", "gs://bucket/a", "az://account/container/a"):
        await (await open_store(parse_store_location(url), random.Random(1))).close()
asyncio.run(main())
print("opened")
"""


@pytest.mark.slow
def test_the_extra_brings_what_the_clouds_need(tmp_path: Path) -> None:
    python = make_environment(tmp_path / "tiered", "tiered")
    words = [str(python), "-c", CLOUDS]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path, env={"HOME": str(tmp_path)}
    )
    assert done.stdout == "opened\n", done.stderr


@pytest.mark.slow
def test_the_core_keeps_objects_in_a_directory_and_says_what_a_cloud_needs(tmp_path: Path) -> None:
    python = make_environment(tmp_path / "core")
    words = [str(python), "-c", CORE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path, env={})
    assert done.stdout.splitlines() == [
        "kept",
        "s3://bucket/prefix needs the package obstore (pip install 'ottla[tiered]')",
        "False",
    ], done.stderr


def test_a_directory_imports_nothing_of_the_clouds(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CORE.replace('"s3://bucket/prefix"', 'f"file://{sys.argv[1]}/other"'), str(tmp_path)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert done.stdout.splitlines() == ["kept", "False"], done.stderr
