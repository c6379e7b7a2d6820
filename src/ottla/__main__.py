"""The composition root: `ottla` and `python -m ottla`.

`start` is dispatched here without loading the CLI machinery: what a supervisor starts a thousand times a day should
not pay for colours and help texts it never shows.

Everything is imported inside `main`, so that Ctrl-C ends it quietly from the first moment on.
"""

import sys

_INTERRUPTED = 130  # what a shell reports for SIGINT


def main() -> None:
    """Run the command line."""
    try:
        _run()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


def _run() -> None:
    from ottla.cli.terminal import outlet

    outlet.install()
    arguments = sys.argv[1:]
    if arguments[:1] == ["start"] and not {"-h", "--help"} & set(arguments):
        from ottla.cli.nodes import start

        raise SystemExit(start.main(arguments[1:]))
    from ottla.cli.app import app

    app(prog_name="ottla")


if __name__ == "__main__":
    main()
