"""A network of its own for a cluster: one namespace per node, joined by a hub that can drop what goes from one to
another, in one direction or both. Nothing of it reaches the outside.

The hub forwards between links of two addresses each; a cut is a routing rule of the hub that swallows packets silently,
as a broken switch would: connections do not end, they fall silent. Needs root and `ip`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

from tests.support.runs.supervised import RUN

# Link n has the addresses base+1 (hub) and base+2 (the far end). The block is reserved for benchmarks (RFC 2544).
BLOCK = "198.18"
CLIENTS = 0


class Network:
    """`ids` get a namespace each; the process that makes this, and all clients it starts, are at the end of link 0."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._names = {id: _name(f"n{id}") for id in ids}
        self._hub = _name("hub")
        self._third = os.getpid() % 250
        self.cuts: set[tuple[int, int]] = set()

    def address(self, id: int) -> str:
        return f"{BLOCK}.{self._third}.{4 * id + 2}"

    def prefix(self, id: int) -> list[str]:
        """What a command is run under to be at the end of this link."""
        return ["ip", "netns", "exec", self._names[id]]

    def adapted(self, id: int, settings: Mapping[str, str]) -> dict[str, str]:
        return dict(settings)

    def watch(self, pids: Callable[[], Mapping[int, int]]) -> None:
        """Nodes are known by their addresses."""

    def start(self) -> Network:
        try:
            _run("ip", "netns", "add", self._hub)
            self._inside(self._hub, "sysctl", "-qw", "net.ipv4.ip_forward=1")
            for id, name in self._names.items():
                _run("ip", "netns", "add", name)
                self._inside(name, "ip", "link", "set", "lo", "up")
                self._link(id, name)
            self._link(CLIENTS, None)
        except BaseException:
            self.stop()
            raise
        return self

    def _link(self, id: int, name: str | None) -> None:
        """Between the hub and a namespace, or our own."""
        near, far = f"o{self._third}h{id}", f"o{self._third}f{id}"
        hub = f"{BLOCK}.{self._third}.{4 * id + 1}"
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        _run("ip", "link", "set", near, "netns", self._hub)
        self._inside(self._hub, "ip", "addr", "add", f"{hub}/30", "dev", near)
        self._inside(self._hub, "ip", "link", "set", near, "up")
        if name is not None:
            _run("ip", "link", "set", far, "netns", name)
        self._inside(name, "ip", "addr", "add", f"{self.address(id)}/30", "dev", far)
        self._inside(name, "ip", "link", "set", far, "up")
        self._inside(name, "ip", "route", "add", f"{BLOCK}.{self._third}.0/24", "via", hub)

    def cut(self, source: int, target: int) -> None:
        """From now on nothing of `source` reaches `target`."""
        if (source, target) not in self.cuts:
            self.cuts.add((source, target))
            self._rule("add", source, target)

    def heal(self) -> None:
        for source, target in sorted(self.cuts):
            self._rule("del", source, target)
        self.cuts.clear()

    def _rule(self, verb: str, source: int, target: int) -> None:
        words = ("from", self.address(source), "to", self.address(target), "priority", "100", "blackhole")
        self._inside(self._hub, "ip", "rule", verb, *words)

    def _inside(self, name: str | None, *words: str) -> None:
        _run(*(("ip", "netns", "exec", name) if name is not None else ()), *words)

    def stop(self) -> None:
        """Links go with their namespaces."""
        for name in (*self._names.values(), self._hub):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def unavailable() -> str | None:
    """Why there can be no such network here, or None."""
    if shutil.which("ip") is None:
        return "no ip command (iproute2)"
    probe = _name("probe")
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return None if done.returncode == 0 else f"network namespaces cannot be made: {done.stderr.strip()}"


def _name(part: str) -> str:
    """That of a namespace: `tests.support.runs.supervised` removes those of its run, should this process be killed."""
    return f"{os.environ.get(RUN, 'ottla-')}{os.getpid()}-{part}"


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
