"""A real Kerberos key distribution centre (MIT's krb5kdc) on loopback, with a realm of its own in one directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.ports import free_ports
from tests.support.tools import kerberos_program
from tests.support.waiting import until

REALM = "OTTLA.TEST"
_CONFIG = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 default_ccache_name = FILE:{directory}/nobody.ccache
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""
_KDC_CONFIG = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principals
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
  max_life = 1h
  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
 }}
[dbmodules]
 {realm} = {{
  db_library = db2
  database_name = {directory}/principals
 }}
"""


class Kdc:
    """`environment` is what programs need to find the realm; Java has a property of its own (`java_option`)."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config = directory / "krb5.conf"
        (port,) = free_ports(1)
        values = {"realm": REALM, "directory": directory, "port": port}
        self.config.write_text(_CONFIG.format(**values))
        (directory / "kdc.conf").write_text(_KDC_CONFIG.format(**values))
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHENAME": f"file2:{directory}/replays",
        }
        self.java_option = f"-Djava.security.krb5.conf={self.config}"
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "the master password of a test")

    def start(self) -> Kdc:
        ready = self.directory / "pid"
        ready.unlink(missing_ok=True)
        with (self.directory / "kdc.log").open("ab") as log:
            self._process = subprocess.Popen(
                [kerberos_program("krb5kdc"), "-n", "-P", str(ready)],
                env=self._whole(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(lambda: ready.exists() or self._has_ended(), bool)
        assert not self._has_ended(), (self.directory / "kdc.log").read_text()
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def add(self, principal: str) -> Path:
        """Make a principal, or a new key of one that exists; return its keytab, which keeps older keys."""
        keytab = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        return keytab

    def new_key(self, principal: str) -> None:
        """Give a principal another key: its keytab is worth nothing from now on."""
        self._run("kadmin.local", "-q", f"cpw -randkey {principal}")

    def tickets(self, principal: str, keytab: Path, *, lifetime: str = "1h") -> Path:
        """Get a ticket of a principal by kinit; return the credential cache."""
        cache = self.directory / f"{principal.replace('/', '-')}-{lifetime}.ccache"
        self._run("kinit", "-l", lifetime, "-c", f"FILE:{cache}", "-k", "-t", str(keytab), principal)
        return cache

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [kerberos_program(program), *arguments],
            env=self._whole(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    @staticmethod
    def _whole(own: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, **own}
