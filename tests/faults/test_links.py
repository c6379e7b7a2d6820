"""The proxies that stand in for a network: what is cut is silent, each direction by itself, and nothing gets lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.chaos.proxy import HOST, Proxies
from tests.support.waiting import WAIT_S

DIALLER, LISTENER = 1, 2
SILENCE_S = 0.1


class Ends:
    """Both ends of what goes through a door; this process is both nodes."""

    def __init__(self, listening: socket.socket, door: str) -> None:
        self._listening = listening
        self._door = (HOST, int(door.split(":")[1]))
        self._open = [listening]

    def dial(self) -> socket.socket:
        return self._kept(socket.create_connection(self._door, timeout=WAIT_S))

    def accept(self) -> socket.socket:
        return self._kept(self._listening.accept()[0])

    def _kept(self, made: socket.socket) -> socket.socket:
        made.settimeout(20)
        self._open.append(made)
        return made

    def close(self) -> None:
        for each in self._open:
            each.close()


@contextmanager
def ends(proxies: Proxies) -> Iterator[Ends]:
    listening = socket.create_server((HOST, 0))
    listening.settimeout(20)
    made = Ends(listening, proxies.door(LISTENER, f"{HOST}:{listening.getsockname()[1]}"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def proxies() -> Iterator[Proxies]:
    made = Proxies((DIALLER, LISTENER)).start()
    made.watch(lambda: {DIALLER: os.getpid()})
    try:
        yield made
    finally:
        made.stop()


def is_silent(end: socket.socket) -> bool:
    """Neither data nor its end arrives for a moment."""
    end.settimeout(SILENCE_S)
    try:
        end.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        end.settimeout(20)
    return False


def test_one_direction_at_a_time(proxies: Proxies) -> None:
    with ends(proxies) as pair:
        near = pair.dial()
        far = pair.accept()
        near.sendall(b"one")
        assert far.recv(10) == b"one"
        proxies.cut(DIALLER, LISTENER)
        near.sendall(b"two")
        far.sendall(b"still heard")
        assert near.recv(20) == b"still heard"
        assert is_silent(far)
        proxies.heal()
        assert far.recv(10) == b"two"
        proxies.cut(LISTENER, DIALLER)
        near.sendall(b"three")
        assert far.recv(10) == b"three"
        far.sendall(b"four")
        assert is_silent(near)
        proxies.heal()
        assert near.recv(10) == b"four"


def test_new_connections_wait(proxies: Proxies) -> None:
    with ends(proxies) as pair:
        proxies.cut(LISTENER, DIALLER)  # it hears the other, but cannot shake hands
        near = pair.dial()
        near.sendall(b"hello")
        assert is_silent(near)
        assert not proxies.carried
        proxies.heal()
        assert pair.accept().recv(10) == b"hello"
        assert proxies.carried == {(DIALLER, LISTENER): 1}


def test_not_even_an_end_passes(proxies: Proxies) -> None:
    with ends(proxies) as pair:
        near = pair.dial()
        far = pair.accept()
        proxies.cut(DIALLER, LISTENER)
        near.close()
        assert is_silent(far)
        proxies.heal()
        assert far.recv(10) == b""


def test_nobody_behind_a_door(proxies: Proxies) -> None:
    with ends(proxies) as pair:
        pair.close()
        assert ended(pair.dial())


def test_strangers_stay_outside(proxies: Proxies) -> None:
    proxies.watch(dict)
    with ends(proxies) as pair:
        assert ended(pair.dial())
        assert not proxies.carried


def ended(end: socket.socket) -> bool:
    try:
        return end.recv(10) == b""
    except ConnectionResetError:
        return True
