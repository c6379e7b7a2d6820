"""`python -m ottla.registry`: the registry that `ottla up` starts beside its node.

It prints one line to standard output: `ready URL`, or `failed` and why. Users start a registry with `ottla registry`.
"""

from __future__ import annotations

import argparse
import errno
import sys

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
    given = parser.parse_args()
    handler = logs.set_up(sys.stderr, level="WARNING")
    try:
        run(ServiceOptions(given.bootstrap, given.host, given.port), _announce, with_parent=True)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        print("failed", f"port {given.port} is taken" if taken else error.strerror or error, flush=True)
        return 1
    except WrongTopic as wrong:
        print("failed", wrong, flush=True)
        return 1
    except ElectionRefused:
        return 1
    finally:
        logs.tear_down(handler)
    return 0


def _announce(service: Service) -> None:
    print("ready", service.url, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
