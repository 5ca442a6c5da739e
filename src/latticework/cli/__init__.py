"""The command ``latticework``: learn rules from a file, apply them, write them out.

Heavy imports wait until a command needs them, so that ``--help`` and ``--version`` are quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from latticework.cli.arguments import make_parser
from latticework.cli.errors import CommandError
from latticework.cli.terminal import say_error

__all__ = ["main"]

# Exit codes: a mistake in the command or its files; an interrupt that left nothing; a reader of
# the output that went away (what a shell reports for SIGINT and SIGPIPE).
MISTAKE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``latticework`` on the command line; by default ``sys.argv[1:]``.

    Returns
    -------
    int
        0, also for the best model so far after an interrupt; 2 after a mistake in the command or
        its files; 130 when it was interrupted before there was anything to save.
    """
    try:
        options = make_parser().parse_args(arguments)
        options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        say_error(f"error: {error}")
        return MISTAKE
    except (KeyboardInterrupt, SystemError) as error:
        # Compiled code that is interrupted ends with a SystemError.
        if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        say_error("interrupted before it was done: nothing was saved")
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more at its end: give it something to flush into.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except SystemExit as finished:  # argparse, after --help and --version
        return int(finished.code or 0)
    return 0
