"""What the user can mend is said in a line, and the exit code says whose fault it was."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from truecast.cli.terminal import for_terminal, say, visible
from truecast.errors import InputError, TruecastError

__all__ = ["Refusal", "errors", "interruptible", "readable"]

_PIPE_CLOSED = 128 + 13  # as a shell has it of a command that SIGPIPE ends

# what commands import only when they need it, and the extra that brings it
_EXTRAS = {
    "backports": "cli",
    "httptools": "serve",
    "httpx": "serve",
    "matplotlib": "plot",
    "msgspec": "serve",
    "polars": "cli",
    "psycopg": "postgres",
    "rich": "cli",
    "uvicorn": "serve",
    "uvloop": "serve",
}


class Refusal(click.ClickException):
    """What the user can mend: a line, and exit code 2."""

    exit_code = 2


@contextmanager
def readable() -> Iterator[None]:
    """Let an error be shown as everything else is, click's own as well."""
    try:
        yield
    except click.ClickException as error:
        if type(error).show not in (click.ClickException.show, click.UsageError.show):
            raise  # help, where nothing was asked for
        message = error.format_message().replace("\n\t", " ")  # click lists choices line by line
        text = for_terminal(visible(f"Error: {message}")).removeprefix("Error: ")
        if isinstance(error, click.UsageError):
            raise click.UsageError(text, error.ctx) from error
        raise (Refusal if error.exit_code == Refusal.exit_code else click.ClickException)(
            text
        ) from error
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        raise Refusal(
            f"this needs {missing}, which is not installed: "
            f"pip install 'truecast[{_EXTRAS[missing]}]'"
        ) from error
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        _leave_closed_pipe()
        raise click.exceptions.Exit(_PIPE_CLOSED) from None


def _leave_closed_pipe() -> None:
    """Send what is still to be written nowhere: Python would complain about it at its end."""
    with suppress(OSError, ValueError):  # of tests, outputs are no files
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def errors(options: dict[str, str] | None = None) -> Iterator[None]:
    """Say in a line what is wrong, arguments by the names that the command has for them."""
    try:
        with interruptible("stopped"):
            yield
    except InputError as error:
        option = (options or {}).get(error.argument, f"--{error.argument.replace('_', '-')}")
        raise Refusal(option + str(error).removeprefix(error.argument)) from error
    except TruecastError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has gone: `readable` ends quietly
        raise click.ClickException(str(error)) from error


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """At Ctrl-C, say this and end with exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(message)
        raise click.exceptions.Exit(130) from None
