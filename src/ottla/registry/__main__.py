"""`python -m ottla.registry`: the registry that `ottla up` starts beside its node.

It prints one line to standard output: `ready URL`, or `failed` and why. Users start a registry with `ottla registry`.
"""

from __future__ import annotations

import argparse
import errno
import sys

from ottla.client.errors import AuthenticationError
from ottla.model.errors import ApiError
from ottla.observe import logs
from ottla.registry.leader import ElectionRefused
from ottla.registry.process import run
from ottla.registry.service import Service, ServiceOptions
from ottla.registry.topic import WrongTopic


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.registry")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", help="a file of the registry's settings; the address of --host and --port counts")
    parser.add_argument("--log-format", choices=("plain", "json"), default="plain")
    given = parser.parse_args()
    handler = logs.set_up(sys.stderr, level="WARNING", style=given.log_format)
    try:
        run(_options(given), _announce, with_parent=True)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        print("failed", f"port {given.port} is taken" if taken else error.strerror or error, flush=True)
        return 1
    except (WrongTopic, ValueError) as wrong:
        print("failed", wrong, flush=True)
        return 1
    except ApiError as invalid:
        print("failed", invalid.text, flush=True)
        return 1
    except AuthenticationError as refused:
        print("failed", f"the cluster refuses the registry's user: {refused}", flush=True)
        return 1
    except ElectionRefused:
        return 1
    finally:
        logs.tear_down(handler)
    return 0


def _options(given: argparse.Namespace) -> ServiceOptions:
    """Raises OSError, ValueError if the file is not one of a registry's settings."""
    if given.config is None:
        return ServiceOptions(given.bootstrap, given.host, given.port)
    from pathlib import Path

    from ottla.model.properties import parse_entries
    from ottla.model.settings import registry as names
    from ottla.registry.leader import ElectionOptions
    from ottla.registry.security.settings import listener_of, registry_settings
    from ottla.registry.store import StoreOptions

    config, store = registry_settings({each.name: each.value for each in parse_entries(Path(given.config).read_text())})
    return ServiceOptions(
        given.bootstrap,
        given.host,
        given.port,
        config[names.HOST_NAME],
        StoreOptions(config[names.KAFKASTORE_TOPIC], config[names.KAFKASTORE_TOPIC_REPLICATION_FACTOR]),
        ElectionOptions(config[names.SCHEMA_REGISTRY_GROUP_ID]),
        store or None,
        listener_of(config).scheme,
        config,
    )


def _announce(service: Service) -> None:
    print("ready", service.url, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
