"""Façades of the server's rooms: which modules of a room other rooms, and other packages, import.

Each room has a façade; beside it, other rooms may know its value types and functions, and the parts that a façade hands
out by type. A module that is not in this table is private to its room. The table is exact, so it can only shrink by
itself: an entry that nobody needs any more has to go, and a new one is a decision.
"""

from __future__ import annotations

from dataclasses import fields

import grimp

from ottla.server.api.context import Facades

SERVER = "ottla.server"

# room → its façades, and the other modules that may be imported from outside
OPEN = {
    "ports": ("ports", "os_disk process_usage sockets system"),
    "quotas": ("client_quotas", "connection_rates fetch_quota quota_updates"),
    "settings": (
        "configs",
        "endpoints foreign_classes listener_config listeners log_levels metrics_listener node_settings "
        "otel_place security_refusals start_refusals",
    ),
    "security": (
        "node_security",
        "audit.log audit.sinks audit.writer authentication authorization credentials key_document listener_security "
        "listener_tls logins peer_security provider_trust verification_keys",
    ),
    "storage": (
        "storage",
        "batch_looks cold_reads directories directory_choice formatting identity partitions recovery removal "
        "time_searches vacancy",
    ),
    "otel": ("otel_export", "tracer"),
    "peers": ("peers peer_requests", ""),
    "quorum": (
        "quorum_member",
        "active_controller broker_lifecycle controller_link joining metadata_host not_controller producer_ids quorum "
        "settings",
    ),
    "replication": ("replication", ""),
    "tenants": ("tenants", ""),
    "telemetry": ("client_telemetry", ""),
    "fetch": ("fetches", "answers engine fetch_sessions share_sessions"),
    "dead_letters": ("dead_letters", "letters"),
    "coordination": ("runtime", "host hosts"),
    "txns": ("transactions", "marker_writer verdict"),
    "shares": ("shares", "share_states taken_records"),
    "groups": ("groups", "outside_commits share_group_states"),
    "schemas": ("contracts", ""),
    "coordinators": ("on_demand all_coordinators", ""),
    "net": ("listener", "connection_limits handshakes request_in_frame tls_socket"),
    "handlers": ("", ""),
    "metrics": ("node_metrics", "sources"),
}
# These rooms are kits, whose modules are all for others: the event loop's, and what handlers share.
KITS = {"loop", "api"}
# So many rooms handlers may enter; a new one is a decision.
FACADES_MAX = 12


def imported_from_outside() -> dict[str, set[str]]:
    """The modules of each room that are imported from outside of it, imports for types only included."""
    graph = grimp.build_graph("ottla", cache_dir=None)
    rooms = {child.rpartition(".")[2]: child for child in graph.find_children(SERVER) if graph.find_children(child)}
    found: dict[str, set[str]] = {}
    for room, package in rooms.items():
        inside = {package, *graph.find_descendants(package)}
        found[room] = {
            module.removeprefix(f"{package}.")
            for module in inside - {package}
            if graph.find_modules_that_directly_import(module) - inside
        }
    return found


def test_other_rooms_import_facades_and_value_types_alone() -> None:
    found = imported_from_outside()
    assert {room for room in found if room not in OPEN} == KITS
    assert {room: found[room] for room in OPEN} == {room: set(" ".join(names).split()) for room, names in OPEN.items()}


def test_handlers_are_offered_few_facades() -> None:
    assert len({field.name for field in fields(Facades)} - {"advertised"}) <= FACADES_MAX
