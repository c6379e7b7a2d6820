"""A PostgreSQL server on loopback, for outputs over JDBC.

PostgreSQL refuses to run as root: then it is run as the user that its package created, in a directory of that user.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports
from tests.support.tools import postgres_program

_OWNER = "ottla"


class Postgres:
    """A server with an empty database; `url` is the address for JDBC."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _unprivileged()
            os.chown(self._directory, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._server: subprocess.Popen[bytes] | None = None
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        data = self._directory / "data"
        how = ["--auth=trust", f"--username={_OWNER}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            [postgres_program("initdb"), *how, data], cwd=self._directory, capture_output=True, text=True, **self._as
        )
        assert made.returncode == 0, made.stderr
        (port,) = free_ports(1)
        self.url = f"jdbc:postgresql://127.0.0.1:{port}/postgres?user={_OWNER}"
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "port": port, "fsync": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = self._directory / "log"
        with log.open("wb") as output:
            self._server = subprocess.Popen(
                [postgres_program("postgres"), "-D", data, *options],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **self._as,
            )
        deadline = time.monotonic() + 60
        while "ready to accept connections" not in (said := log.read_text(errors="replace")):
            assert self._server.poll() is None and time.monotonic() < deadline, said
            time.sleep(0.05)

    def close(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)  # a fast shutdown: it aborts open transactions and stops cleanly
            self._server.wait(30)
        shutil.rmtree(self._directory)


def _unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")
