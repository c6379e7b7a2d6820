"""Real servers that die, hang, refuse and lose answers, and what callers are told."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.stalls.measuring.measure import BUDGET_MS, recorded, without_collections
from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.processes import azurite, versitygw
from tests.support.processes.azurite import AzureServer
from tests.support.processes.versitygw import S3Server, s3_server
from tests.support.waiting import until_async
from tests.tier.stores.doors import door_to
from tests.tier.stores.places import listed, read_all, reader_of

from ottla.model import limits
from ottla.model.store_location import parse_store_location
from ottla.tier.stores.buckets import open_cloud
from ottla.tier.stores.cloud import CloudObjectStore
from ottla.tier.stores.errors import (
    ObjectExists,
    ObjectNotFound,
    StoreBroken,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from ottla.tier.stores.opening import open_store
from ottla.tier.stores.patient import PatientObjectStore
from ottla.tier.stores.port import Content, ObjectInfo

PART = limits.STORE_PART_BYTES


@pytest.fixture
def killed_s3(s3: S3Server) -> Iterator[S3Server]:
    """The server of the module, which this test may kill."""
    yield s3
    s3.kill()
    s3.start()


def once(url: str) -> CloudObjectStore:
    return open_cloud(parse_store_location(url))


def patient(url: str, **bounds: float) -> PatientObjectStore:
    return PatientObjectStore(once(url), random.Random(1), **bounds)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 300))


def is_among(key: str, found: list[ObjectInfo]) -> bool:
    return key in {info.key for info in found}


def told(error: BaseException) -> str:
    """All that a log could say of an error."""
    return f"{error!r} {error} {getattr(error, 'hint', '')}" + "".join(traceback.format_exception(error))


def test_a_server_that_dies_within_a_put_leaves_no_object(killed_s3: S3Server) -> None:
    content = random.Random(1).randbytes(6 * PART + 1)

    async def main() -> None:
        store = once(killed_s3.url("dies"))

        async def kills(start: int, count: int) -> Content:
            if start == 4 * PART:
                killed_s3.kill()
            return content[start : start + count]

        with pytest.raises(StoreUnavailable):
            await store.put_parts("a/b", len(content), kills)
        killed_s3.start()
        with pytest.raises(ObjectNotFound):
            await store.look("a/b")
        assert await listed(store) == []
        await store.put_parts("a/b", len(content), reader_of(content))
        assert await read_all(store, "a/b") == content

    run(main())


def test_a_server_that_is_back_soon_is_not_noticed(killed_s3: S3Server) -> None:
    content = random.Random(2).randbytes(3 * PART)

    async def main() -> None:
        store = patient(killed_s3.url("back"))
        killed_s3.kill()
        waiting = [
            asyncio.ensure_future(store.put("small", b"x")),
            asyncio.ensure_future(store.create("new", b"y")),
            asyncio.ensure_future(store.put_parts("large", len(content), reader_of(content))),
        ]
        await asyncio.sleep(1)
        assert not any(task.done() for task in waiting)
        await asyncio.to_thread(killed_s3.start)
        await asyncio.gather(*waiting)
        assert await read_all(store, "large") == content
        assert [info.key for info in await listed(store)] == ["large", "new", "small"]

    run(main())


def test_nobody_listens(s3: S3Server) -> None:
    async def main() -> None:
        (port,) = free_ports(1)
        store = patient(s3.url("nobody", port=port), patience_s=1)
        for call in (store.put("a", b""), store.read("a", 0, 1), store.delete(["a"]), listed(store)):
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                await call

    run(main())


def test_a_server_that_hangs_and_comes_back(s3: S3Server) -> None:
    """All ways there are closed for a while: tries end, and later ones succeed."""
    content = random.Random(3).randbytes(2 * PART)

    async def main() -> None:
        async with door_to(s3.port) as door:
            store = patient(s3.url("hangs", port=door.port), try_s=1.0)
            await store.put("a", b"x")
            door.is_open.clear()
            short = PatientObjectStore(once(s3.url("hangs", port=door.port)), random.Random(1), try_s=0.5, patience_s=1)
            for call in (short.look("a"), short.put("b", b""), short.put_parts("c", len(content), reader_of(content))):
                with pytest.raises(StoreUnavailable, match=r"within 0\.5 s"):
                    await call
            waiting = asyncio.ensure_future(store.look("a"))
            await asyncio.sleep(1.5)
            door.is_open.set()
            assert (await waiting).size_bytes == 1
            await store.put_parts("c", len(content), reader_of(content))
            assert await read_all(store, "c") == content

    run(main())


def test_a_slow_way_is_no_failure(s3: S3Server) -> None:
    content = random.Random(4).randbytes(3 * PART)

    async def main() -> None:
        async with door_to(s3.port) as door:
            door.delay_s = 0.002
            store = patient(s3.url("slow", port=door.port))
            await store.put_parts("a", len(content), reader_of(content))
            assert await read_all(store, "a", PART) == content

    run(main())


def test_lost_answers_of_a_create_are_made_up_for(s3: S3Server) -> None:
    """The way is cut when the request has arrived: the object is there, and nobody was told."""

    async def main() -> None:
        async with door_to(s3.port) as door:
            watching = once(s3.url("lost"))
            store = patient(s3.url("lost", port=door.port))
            for number in range(5):
                door.delay_s = 0.3  # of the request, and again of its answer
                key = f"key-{number}"
                creating = asyncio.ensure_future(store.create(key, b"mine"))
                await until_async(lambda: listed(watching), partial(is_among, key))
                door.cut()
                door.delay_s = 0
                await creating
                assert await read_all(store, key) == b"mine"
                with pytest.raises(ObjectExists):
                    await store.create(key, b"mine")

    run(main())


def test_cut_connections_are_made_again(s3: S3Server) -> None:
    content = random.Random(5).randbytes(8 * PART)

    async def main() -> None:
        async with door_to(s3.port) as door:
            store = patient(s3.url("cut", port=door.port))

            async def cuts(start: int, count: int) -> Content:
                if start in (2 * PART, 5 * PART):
                    door.cut()
                return content[start : start + count]

            await store.put_parts("a", len(content), cuts)
            assert await read_all(store, "a", PART) == content
            # Only parts that were under way when the way was cut are sent again, not all of them.
            assert door.carried_bytes < len(content) * 2

    run(main())


@pytest.mark.parametrize("which", ["s3", "azure"])
def test_wrong_credentials_are_told_without_them(
    which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: S3Server | AzureServer = request.getfixturevalue(which)
    name = "AWS_SECRET_ACCESS_KEY" if which == "s3" else "AZURE_STORAGE_ACCOUNT_KEY"
    wrong = "d3JvbmctYW5kLXNlY3JldC1rZXktb2Ytc29tZWJvZHk="
    monkeypatch.setenv(name, wrong)

    async def main() -> None:
        store = patient(server.url("denied"))
        for call in (
            store.put("a", b"x"),
            store.create("a", b"x"),
            store.put_parts("a", 2 * PART, reader_of(bytes(2 * PART))),
            store.read("a", 0, 1),
            store.look("a"),
            store.delete(["a"]),
            listed(store),
        ):
            with pytest.raises(StoreDenied) as raised:
                await call
            text = told(raised.value)
            assert wrong not in text and "ignature=" not in text and "StringToSign" not in text, text
            assert versitygw.SECRET_KEY not in text and azurite.KEY not in text
            assert "credentials" in text and raised.value.__cause__ is None and raised.value.__context__ is None

    run(main())


def test_a_signed_url_is_not_told(azure: AzureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared access signature travels in the URL."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2021-08-06&ss=b&srt=sco&sp=rwdl&sig=c2VjcmV0LXNpZ25hdHVyZQ%3D%3D")
    (port,) = free_ports(1)

    async def main() -> None:
        for url in (azure.url("sas"), azure.url("sas").replace(f":{azure.port}/", f":{port}/")):
            with pytest.raises(StoreError) as raised:
                await once(url).put("a", b"x")
            text = told(raised.value)
            assert "c2VjcmV0" not in text and "sig=" not in text and "sp=rwdl" not in text, text

    run(main())


def test_a_bucket_that_does_not_exist_is_told(s3: S3Server, azure: AzureServer) -> None:
    async def main() -> None:
        for url in (s3.url("x", bucket="no-such-bucket"), azure.url("x", container="no-such-container")):
            store = patient(url)
            for call in (store.put("a", b"x"), store.read("a", 0, 1), listed(store)):
                with pytest.raises(StoreBroken, match="create the bucket"):
                    await call

    run(main())


def test_a_wrong_region_is_told(s3: S3Server) -> None:
    async def main() -> None:
        with pytest.raises(StoreBroken, match=r'"eu-north-1" is wrong.*set region='):
            await patient(s3.url("region").replace("us-east-1", "eu-north-1")).put("a", b"x")

    run(main())


def test_a_private_authority_is_trusted_when_it_is_named(s3: S3Server, tmp_path: Path) -> None:
    """`s3` is for the environment."""
    authority = Authority()
    authority.server().write(tmp_path, "store")
    ca = authority.write(tmp_path / "ca.pem")

    async def main(server: S3Server) -> None:
        with pytest.raises(StoreBroken, match=r"certificate is not trusted.*ca= in ottla"):
            await once(server.url("tls")).put("a", b"x")
        trusting = patient(f"{server.url('tls')}&ca={ca}")
        await trusting.put("a", b"x")
        assert await read_all(trusting, "a") == b"x"

    (tmp_path / "tls").mkdir()
    with s3_server(tmp_path / "tls", (tmp_path / "store.crt", tmp_path / "store.key")) as server:
        run(main(server))


def test_parts_in_memory_are_few(s3: S3Server) -> None:
    """Of an object of any size, only what is being sent and what is read next is held."""
    count = 24
    alive = most = 0

    class Part(bytearray):
        def __init__(self, size_bytes: int) -> None:
            nonlocal alive, most
            super().__init__(size_bytes)
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    async def main() -> None:
        async def read(start: int, size_bytes: int) -> Content:
            return Part(size_bytes)

        await once(s3.url("memory")).put_parts("a", count * PART, read)
        assert 0 < most <= limits.STORE_PARTS_AT_ONCE + 2, most

    run(main())
    assert alive == 0


@pytest.mark.parametrize("which", ["s3", "file"])
def test_the_loop_is_not_held_up(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Neither by large objects nor by many small ones; obstore's threads take no time of it."""
    content = random.Random(6).randbytes(6 * PART)
    url = request.getfixturevalue("s3").url("loop") if which == "s3" else f"file://{tmp_path}/store"

    async def main() -> None:
        with recorded() as opening:
            store = await open_store(parse_store_location(url), random.Random(1))
        assert opening.worst().cpu_ms < BUDGET_MS, opening.worst()
        with without_collections(), recorded() as recording:
            await store.put_parts("large", len(content), reader_of(content))
            found = await asyncio.gather(*(store.read("large", at, PART) for at in range(0, len(content), PART)))
            names = [f"many/{number:04}" for number in range(1_200)]
            await asyncio.gather(*(store.put(name, b"x") for name in names))
            assert [info.key for info in await listed(store, "many/")] == names
            await store.delete(names)
        worst = recording.worst()
        await store.close()
        assert worst.cpu_ms < BUDGET_MS, worst
        assert b"".join(found) == content

    run(main())
