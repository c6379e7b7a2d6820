"""Time, chance, sockets, files and threads come in at the ports only: elsewhere they are not simulated."""

import ast
from pathlib import Path

import pytest

import ottla

SOURCE = Path(ottla.__file__).parent
OUTSIDE = (
    "time",
    "random",
    "socket",
    "ssl",
    "threading",
    "subprocess",
    "os",
    "pathlib",
    "select",
    "signal",
    "uuid",
    "secrets",
)
# Where the outside world may be touched, and with what.
PORTS = {
    "server/process.py": {"signal"},  # run
    "server/ports/ports.py": {"time", "random"},
    "server/loop/watchdog.py": {"time", "threading"},  # watches a real loop; comes in by a port
    "server/loop/garbage_collector.py": {"time"},  # of the process
    "server/api/context.py": {"random"},  # the type of a port
    "server/loop/runtime.py": {"random"},  # the type of a port
    "server/fetch/fetch_sessions.py": {"random"},  # the type of its parameter
    "server/ports/sockets.py": {"socket"},
    "server/ports/process_usage.py": {"os", "threading", "time"},  # CPU, memory and files of the process
    "server/metrics/http_endpoint.py": {"socket"},  # a type: asyncio takes real sockets, and scrapers are real only
    # A collector is real only: no node of the simulator has one.
    "server/otel/pushes.py": {"threading"},
    "server/otel/tracer.py": {"random"},  # seeded by the port's: the system's own asks the kernel for each request
    "server/settings/otel_place.py": {"os"},  # whether the authorities' file can be read
    "server/ports/cpu_wait.py": {"os", "threading"},  # what the scheduler tells of a thread
    "server/ports/system.py": {"os"},  # locks and limits of the real world
    "server/storage/directories.py": {"threading"},  # a lock: workers write checkpoints, too
    "server/ports/os_disk.py": {"os", "threading"},
    "server/ports/os_file.py": {"os", "threading", "time"},
    "server/ports/disk_reserve.py": {"os", "threading"},  # part of the real disk
    "server/ports/page_cache.py": {"os"},  # what is in memory of a real file
    "server/net/listener.py": {"socket"},  # constants and types
    "server/net/departed_client.py": {"socket"},  # a constant
    "client/options.py": {"time", "random"},
    "client/producer/partitioner.py": {"random"},  # the type of its parameter
    "client/producer/hot_keys.py": {"random"},  # the type of its parameter
    "client/connection.py": {"ssl", "os", "socket"},  # types and constants
    "client/registry.py": {"time", "uuid", "ssl"},  # blocking, for programs without a loop; the type of an id
    "server/schemas/registered_schema.py": {"uuid"},  # the type of an id
    # TLS and SASL are real only: the simulator's listeners have neither.
    "server/net/handshake.py": {"ssl", "socket"},
    "server/net/handshakes.py": {"ssl", "socket"},
    "server/net/tls_pipe.py": {"ssl", "socket"},
    "server/net/tls_socket.py": {"ssl", "socket"},
    "server/security/certificate_changes.py": {"ssl"},  # a handshake in memory
    "server/security/guarded_tls.py": {"ssl"},
    "server/security/listener_tls.py": {"ssl"},
    "server/security/named_contexts.py": {"ssl"},  # types
    "server/security/key_document.py": {"pathlib"},  # keys of an identity provider
    "server/settings/security_refusals.py": {"os"},  # whether the audit file can be written
    "server/security/audit/sinks.py": {"os"},  # a file of the operator's choice
    "client/dialling.py": {"ssl", "os"},  # types, and the text of an error
    "client/profiles.py": {"os", "pathlib"},  # files of the user
    "client/security/context.py": {"ssl", "os"},  # certificates of the real world
    "client/security/tls_failures.py": {"ssl"},
    "client/security/web.py": {"socket", "threading"},  # a connection that ends in time
    "client/security/security.py": {"pathlib"},  # a type of its parameter
    "client/security/stores.py": {"pathlib"},
    "client/security/secret.py": {"os", "pathlib"},  # secrets of the environment and of files
    "client/security/sasl.py": {"secrets"},  # nonces
    "client/security/tokens.py": {"pathlib", "threading", "time"},  # tokens of files and of an identity provider
    "client/security/kerberos.py": {"threading"},  # a lock: one thread fetches tickets, others find them
    "client/security/conversation.py": {"random"},  # when a session is renewed
    "client/admin/users.py": {"os"},  # the salt of a password
    "client/blocking/blocking.py": {"threading"},  # the façade for programs without a loop
    "client/blocking/consumers.py": {"threading"},  # a lock: one thread reads at a time
}
MODULES = sorted(
    str(path.relative_to(SOURCE)) for part in ("server", "client") for path in (SOURCE / part).rglob("*.py")
)


def imported(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("module", MODULES)
def test_the_outside_world_is_only_touched_at_the_ports(module: str) -> None:
    found = imported(ast.parse((SOURCE / module).read_text())) & set(OUTSIDE)
    assert found <= PORTS.get(module, set())
