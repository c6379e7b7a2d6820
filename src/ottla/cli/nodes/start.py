"""`ottla start`: a node in the foreground, for supervisors and scripts.

Rules:
- Only the node is imported here: `ottla.__main__` calls `main` directly, because the benchmark measures the time to the
  first acknowledged record.
- stdout gets exactly one line, which begins with `ready` and names the addresses; everything else goes to stderr.
- SIGTERM and SIGINT lead to a clean stop and exit code 0; a node that cannot start prints one line and has exit code 1.
- With `--until-eof` the end of standard input stops the node, too: the process that started the node holds the other
  end, so the node ends with it, even after a kill -9.
"""

from __future__ import annotations

import errno
import logging
import sys
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ottla.cli.nodes.addresses import METRICS, check_free
from ottla.cli.terminal.plain import print_error, print_warning
from ottla.model.settings.log import LOG_DIR, LOG_DIRS
from ottla.model.settings.network import LISTENERS
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.server.node import Node
    from ottla.server.storage.recovery import Watch

USAGE = "ottla start [[--config] FILE] [--data DIR] [--listen HOST:PORT] [--set NAME=VALUE]... [--log-level LEVEL]"

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_ELSEWHERE = "--data DIR (log.dirs) names a directory that can be written"
_TAKEN = f"is another node running here? --listen and {OTTLA_METRICS_LISTENER.name} take other ports"
_DISK_HINTS = {
    errno.EROFS: f"it lies on a read-only file system: {_ELSEWHERE}",
    errno.ENOTDIR: f"that is a file and no directory: {_ELSEWHERE}",
    errno.EACCES: f"this user may not write there: {_ELSEWHERE}",
    errno.EPERM: f"this user may not write there: {_ELSEWHERE}",
    errno.ENOSPC: f"the disk is full: make room, or {_ELSEWHERE}",
    errno.EDQUOT: f"the quota for this disk is used up: make room, or {_ELSEWHERE}",
}
_STOP_S = 30.0  # how long a node may take to stop after the process that started it is gone
LogFormat: TypeAlias = Literal["plain", "json"]
LOG_FORMATS: Final[Mapping[str, LogFormat]] = {"plain": "plain", "json": "json"}


class StartOptions(NamedTuple):
    """The options of the command line; later fields override earlier ones."""

    config: str | None = None
    data: str | None = None
    listen: str | None = None
    settings: tuple[str, ...] = ()
    log_level: str = "INFO"
    until_eof: bool = False
    log_format: LogFormat = "plain"


class UsageError(Exception):
    """The arguments of the command line are wrong."""


def main(arguments: list[str]) -> int:
    """Parse the arguments and serve; returns the exit code."""
    try:
        options = parse(arguments)
        values = node_values(options)
    except UsageError as error:
        print_error(str(error), f"usage: {USAGE}")
        return 2
    except CommandError as error:
        print_error(str(error), error.hint)
        return error.exit_code
    if options.until_eof:
        stop_at_eof()
    return serve(values, announce, log_level=options.log_level, log_format=options.log_format)


def parse(arguments: list[str]) -> StartOptions:
    """Parse options as `--name value` or `--name=value`; an argument without a name is the file."""
    known = {"--config": "config", "-c": "config", "--data": "data", "-d": "data", "--listen": "listen", "-l": "listen"}
    known |= {"--log-level": "log_level", "--log-format": "log_format"}
    found: dict[str, str] = {}
    settings: list[str] = []
    until_eof = False
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--until-eof":
            until_eof = True
            continue
        if not word.startswith("-"):
            _take_file(found, word)
            continue
        name, equals, value = word.partition("=")
        if name not in known and name != "--set":
            raise UsageError(f"there is no option {name}")
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        if name == "--set":
            settings.append(value)
        elif known[name] == "config":
            _take_file(found, value)
        else:
            found[known[name]] = value
    level = found.pop("log_level", "INFO").upper()
    if level not in LOG_LEVELS:
        raise UsageError(f"--log-level is one of {', '.join(LOG_LEVELS)}")
    log_format = LOG_FORMATS.get(found.pop("log_format", "plain").lower())
    if log_format is None:
        raise UsageError(f"--log-format is one of {', '.join(LOG_FORMATS)}")
    if "listen" in found and any(_name(each) == LISTENERS.name for each in settings):
        raise UsageError("--listen and --set listeners=... exclude each other")
    return StartOptions(**found, settings=tuple(settings), log_level=level, until_eof=until_eof, log_format=log_format)


def _take_file(found: dict[str, str], path: str) -> None:
    if "config" in found:
        raise UsageError(f"there can be one properties file only, not {found['config']} and {path}")
    found["config"] = path


def _name(setting: str) -> str:
    return setting.partition("=")[0].strip()


def sets_data(settings: Iterable[str]) -> bool:
    """Whether `--set` sets the data directory, as `--data` does."""
    return any(_name(each) in (LOG_DIRS.name, LOG_DIR.name) for each in settings)


def node_values(options: StartOptions) -> dict[str, str]:
    """The node's properties: those of the file, overridden by the options."""
    values: dict[str, str] = {}
    if options.config is not None:
        from ottla.operations.settings_file import read_settings

        values.update(read_settings(options.config))
        if not values and not (options.data or options.settings):
            raise CommandError(f"{options.config} sets nothing", "log.dirs and listeners at least, or give --data DIR")
    elif options.data is None:
        raise UsageError("give --config FILE or --data DIR")
    if options.data is not None:
        if sets_data(options.settings):
            raise UsageError("--data and --set log.dirs=... exclude each other")
        values[LOG_DIRS.name] = options.data
    if options.listen is not None:
        values[LISTENERS.name] = listener(options.listen)
    for setting in options.settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes NAME=VALUE, not {setting!r}")
        values[name.strip()] = value
    return values


def listener(text: str) -> str:
    """`HOST:PORT` as an entry of `listeners`; a text that is an entry already stays."""
    if "://" in text:
        return text
    try:
        host, port = host_and_port(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return f"PLAINTEXT://[{host}]:{port}" if ":" in host else f"PLAINTEXT://{host}:{port}"


def serve(
    values: Mapping[str, str],
    on_ready: Callable[[Node], None],
    on_recovery: Watch | None = None,
    *,
    log_level: str = "INFO",
    log_format: LogFormat = "plain",
) -> int:
    """Run the node until it is told to stop; returns the exit code."""
    from ottla.cluster.state import JournalError
    from ottla.log.files.checkpoint import CheckpointError
    from ottla.log.files.disk import StorageError
    from ottla.log.producers.snapshot import SnapshotError
    from ottla.model.broker_settings import BROKER_SETTINGS
    from ottla.model.config import unknown, without_effect
    from ottla.model.errors import ApiError
    from ottla.observe import logs
    from ottla.server import process
    from ottla.server.settings.configs import Configs
    from ottla.server.settings.listeners import listened
    from ottla.server.settings.metrics_listener import metrics_address
    from ottla.server.settings.start_refusals import check_start
    from ottla.server.storage.identity import IdentityError

    handler = logs.set_up(sys.stderr, level=log_level, style=log_format)
    for name, nearest in unknown(values, BROKER_SETTINGS):
        print_warning(f"there is no setting {name}" + (f", did you mean {nearest}?" if nearest else ""))
    try:
        configs = Configs(values)
        endpoints = listened(configs.broker)
        check_start(configs, endpoints)
        idle = without_effect(values, BROKER_SETTINGS)
        if idle:
            logging.getLogger(__name__).info("set, and without effect (docs/settings.md says why): %s", ", ".join(idle))
        check_free((each.host, each.port) for each in endpoints)
        metrics = metrics_address(configs.broker)
        check_free([metrics[:2]] if metrics else [], METRICS)
        process.run(values, on_ready, on_recovery)
    except CommandError as error:
        print_error(str(error), error.hint)
        return 1
    except ApiError as error:
        print_error(error.text, "docs/settings.md says what each setting means and which values it takes")
        return 1
    except OSError as error:
        print_error(str(error), _TAKEN if error.errno == errno.EADDRINUSE else _ELSEWHERE)
        return 1
    except IdentityError as error:
        print_error(str(error), error.hint)
        return 1
    except StorageError as error:
        print_error(_unusable(Configs(values).log_dirs()) or str(error), _DISK_HINTS.get(error.errno, _ELSEWHERE))
        return 1
    except (JournalError, CheckpointError, SnapshotError) as error:
        print_error(str(error), "`ottla log verify DIR` looks at all files of the data directory")
        return 1
    finally:
        logs.tear_down(handler)
    return 0


def _unusable(directories: Iterable[str]) -> str | None:
    """Why a data directory cannot be used, if its path alone shows that; None otherwise."""
    import os

    for directory in directories:
        if os.path.exists(directory) and not os.path.isdir(directory):
            return f"the data directory {directory} is a file"
        if os.path.isdir(directory) and not os.access(directory, os.W_OK | os.X_OK):
            return f"the data directory {directory} is not writable"
    return None


def stop_at_eof() -> None:
    """Stop the node, as by SIGTERM, when standard input ends."""
    import os
    import signal
    import threading
    import time

    def wait() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_STOP_S)
        os._exit(1)

    threading.Thread(target=wait, name="ottla-until-eof", daemon=True).start()


def announce(node: Node) -> None:
    """Print the one line on stdout."""
    print("ready", *(f"{host}:{port}" for host, port in node.addresses), flush=True)
