"""KerberosLogin: where the keys or tickets of a Kerberos login are, as the options of Java's Krb5LoginModule say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.security.sasl.jaas import KERBEROS_MODULE, LoginModule

SERVICE_NAME: Final = "sasl.kerberos.service.name"
_TRUE: Final = "true"


class KerberosLogin(NamedTuple):
    """`service` is the name that brokers run as. Without keytab and cache, the defaults of Kerberos apply."""

    service: str
    principal: str = ""
    keytab: str = ""  # a file; empty: the default keytab, if `uses_keytab`
    uses_keytab: bool = False
    stores_key: bool = False
    ticket_cache: str = ""  # a file; empty: the default cache, if `uses_ticket_cache`
    uses_ticket_cache: bool = False

    @classmethod
    def of(cls, module: LoginModule | None, service: str) -> KerberosLogin:
        """Read the options; raise ValueError. `service` is the setting `sasl.kerberos.service.name`. Without a login
        module the default credentials are used.
        """
        if module is not None and module.name != KERBEROS_MODULE:
            raise ValueError(f"the login module of GSSAPI is {KERBEROS_MODULE}, not {module.name}")
        options: Mapping[str, str] = {} if module is None else module.options
        uses_keytab, uses_cache = _is_set(options, "useKeyTab"), _is_set(options, "useTicketCache")
        if options.get("keyTab") and not uses_keytab:
            raise ValueError("the option keyTab needs useKeyTab=true")
        if options.get("ticketCache") and not uses_cache:
            raise ValueError("the option ticketCache needs useTicketCache=true")
        return cls(
            _service(options.get("serviceName", ""), service),
            options.get("principal", ""),
            _path(options.get("keyTab", "")),
            uses_keytab,
            _is_set(options, "storeKey"),
            _path(options.get("ticketCache", "")),
            uses_cache,
        )

    def for_server(self) -> KerberosLogin:
        """Return the same if a server can accept tickets with it; raise ValueError."""
        if not self.uses_keytab or not self.stores_key:
            raise ValueError("a server needs its key: set useKeyTab=true, storeKey=true and keyTab in sasl.jaas.config")
        if not self.principal:
            raise ValueError("a server needs its name: set principal in sasl.jaas.config, as service/host@REALM")
        return self


def _service(option: str, setting: str) -> str:
    """Return the service's name, which both places may tell but not differently."""
    if option and setting and option != setting:
        raise ValueError(f"serviceName in sasl.jaas.config is {option}, but {SERVICE_NAME} is {setting}")
    if not option and not setting:
        raise ValueError(f"{SERVICE_NAME} is not set, nor is serviceName in sasl.jaas.config")
    return option or setting


def _path(text: str) -> str:
    return text.removeprefix("file://").removeprefix("FILE:")


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == _TRUE
