"""Print access control entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.operations.access.entry_words import row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.security.acl_entry import AclEntry

_COLUMNS = ["principal", "permission", "operation", "resource", "name", "pattern", "host"]


def print_entries(entries: Sequence[AclEntry], *, as_json: bool) -> None:
    from ottla.cli.terminal.output import print_rows

    print_rows([row_of(each) for each in entries], _COLUMNS, as_json=as_json)
