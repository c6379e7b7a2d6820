"""Which process is at the other end of a loopback connection, by what Linux says of sockets in /proc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # a JVM's sockets are of the second kind
LOCAL, REMOTE, INODE = 1, 2, 9  # columns


def owner(port: int, remote_port: int, pids: Mapping[int, int]) -> int | None:
    """The id of the process (`pids`: id → pid) whose socket has these ports, or None if it is none of theirs."""
    inode = _inode(port, remote_port)
    if inode is None:
        return None
    wanted = f"socket:[{inode}]"
    return next((id for id, pid in pids.items() if wanted in _descriptors(pid)), None)


def _inode(port: int, remote_port: int) -> str | None:
    ends = f":{port:04X}", f":{remote_port:04X}"
    for table in TABLES:
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            columns = line.split()
            if columns[LOCAL].endswith(ends[0]) and columns[REMOTE].endswith(ends[1]):
                return columns[INODE]
    return None


def _descriptors(pid: int) -> set[str]:
    found = set()
    directory = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(directory):
            found.add(_target(f"{directory}/{name}"))
    except OSError:
        return set()  # it has ended
    return found


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # closed meanwhile
