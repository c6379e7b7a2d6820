"""The composition root: `ottla` and `python -m ottla`.

`start` is dispatched here without loading the CLI machinery: what a supervisor starts a thousand times a day should
not pay for colours and help texts it never shows.

Everything is imported inside `main`, so that Ctrl-C ends it quietly from the first moment on. Python drops a
KeyboardInterrupt that it raises in a weakref's callback or in `__del__`; `_hear_dropped_interrupts` acts on those.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

_INTERRUPTED = 130  # what a shell reports for SIGINT
_LOOK_AGAIN_S = 0.001


def main() -> None:
    """Run the command line."""
    try:
        _hear_dropped_interrupts()
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


def _hear_dropped_interrupts() -> None:
    """Have a dropped KeyboardInterrupt raised again. If it was dropped in the import system's own callback, the import
    lock may never be released, and the next import in a thread would wait for ever: then the process ends at once.

    The signal's handler stays Python's own, because asyncio handles Ctrl-C only if it is.
    """
    import _imp
    import _thread
    import os

    former = sys.unraisablehook
    main_thread = _thread.get_ident()

    def hook(unraisable: sys.UnraisableHookArgs, /) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            former(unraisable)
        elif _imp.lock_held():
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(_INTERRUPTED)
        else:
            _thread.start_new_thread(_interrupt_again, (main_thread, hook.__code__))

    sys.unraisablehook = hook


def _interrupt_again(thread: int, hook: CodeType) -> None:
    """Interrupt the thread as soon as it has left the hook."""
    import signal
    import time

    while thread in (frames := sys._current_frames()):
        frame: FrameType | None = frames[thread]
        while frame is not None and frame.f_code is not hook:
            frame = frame.f_back
        if frame is None:
            signal.pthread_kill(thread, signal.SIGINT)
            return
        time.sleep(_LOOK_AGAIN_S)


if __name__ == "__main__":
    main()
