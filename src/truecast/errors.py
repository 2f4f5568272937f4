"""The errors that truecast raises.

::

    TruecastError
    ├── InputError    (also a ValueError)    an argument breaks a rule; nothing was changed
    │   └── TicketError                      an outcome came twice, or too late
    ├── FileError     (also a ValueError)    a file cannot be read, or a row of it breaks a rule
    ├── StateError    (also a ValueError)    a saved state is corrupted, or of another forecaster
    │   └── VersionError                     a saved state was written by a newer truecast
    ├── OrderError    (also a RuntimeError)  a call at the wrong time: observe() before predict()
    └── ServiceError  (also a RuntimeError)  a service refused a request, or failed
        ├── AccessError                      no token, an unknown one, or one without the scope
        ├── NotFoundError                    there is no such stream or forecast
        ├── ConflictError                    it contradicts what the service knows
        ├── TooLargeError                    more than the service takes at once
        └── UnavailableError                 not now: try again later
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # slow to import
    from pathlib import Path

__all__ = [
    "AccessError",
    "ConflictError",
    "FileError",
    "InputError",
    "NotFoundError",
    "OrderError",
    "ServiceError",
    "StateError",
    "TicketError",
    "TooLargeError",
    "TruecastError",
    "UnavailableError",
    "VersionError",
]

_SHOWN = 80  # characters of a value in a message


class TruecastError(Exception):
    """Everything that truecast raises on purpose."""


class InputError(TruecastError, ValueError):
    """An argument breaks a rule. Nothing was changed.

    Attributes
    ----------
    argument : str
        Its name.
    rule : str
        What it must be.
    value : object
        What it was.
    position : int, tuple of int or None
        Where the value is in a sequence or array, counted from 0.

    Examples
    --------
    >>> print(InputError("outcomes", "must be 0 or 1", 2, position=7))
    outcomes must be 0 or 1, got 2 at position 7
    """

    def __init__(
        self, argument: str, rule: str, value: object, position: int | tuple[int, ...] | None = None
    ) -> None:
        super().__init__(argument, rule, value, position)  # so that it travels between processes
        self.argument = argument
        self.rule = rule
        self.value = value
        self.position = position

    def __str__(self) -> str:
        position = "" if self.position is None else f" at position {self.position}"
        return f"{self.argument} {self.rule}, got {_shown(self.value)}{position}"


class TicketError(InputError):
    """The ticket no longer awaits an outcome: it was resolved or given up before.

    So you can catch outcomes that are delivered twice, and ignore them. A ticket that was never
    issued raises a plain InputError.

    Examples
    --------
    >>> import truecast as tc
    >>> r = tc.Recalibrator()
    >>> ticket = r.issue(0.5)
    >>> for outcome in (1, 1):  # delivered twice
    ...     try:
    ...         r.resolve(ticket, outcome)
    ...     except tc.TicketError as error:
    ...         print("passed over:", error.value)
    passed over: 0
    """


def _shown(value: object) -> str:
    try:
        return f"{value!r:.{_SHOWN}}"
    except Exception:  # an int of thousands of digits, say: it must not hide the error
        return f"something of type {type(value).__name__}"


class FileError(TruecastError, ValueError):
    """A file cannot be read, or a row of it breaks a rule.

    Attributes
    ----------
    file : str
        Its name.
    reason : str
        What is wrong with it.
    place : str or None
        Where, such as "line 17".

    Examples
    --------
    >>> print(FileError("scores.csv", "y must be 0 or 1, got '2'", "line 17"))
    scores.csv, line 17: y must be 0 or 1, got '2'
    """

    def __init__(self, file: str, reason: str, place: str | None = None) -> None:
        super().__init__(file, reason, place)
        self.file = file
        self.reason = reason
        self.place = place

    def __str__(self) -> str:
        return (
            f"{self.file} {self.reason}"
            if self.place is None
            else f"{self.file}, {self.place}: {self.reason}"
        )


class StateError(TruecastError, ValueError):
    """A saved state is corrupted, or belongs to another kind of forecaster."""


class VersionError(StateError):
    """A saved state was written by a newer version of truecast."""


class OrderError(TruecastError, RuntimeError):
    """A call came at the wrong time. Nothing was changed."""


class ServiceError(TruecastError, RuntimeError):
    """A service refused a request, or failed. `Client` raises what the service raised.

    A value that breaks a rule raises InputError, on both sides.

    Attributes
    ----------
    detail : str
        What was refused, and what to do instead.
    status : int
        The HTTP status of the answer; 0 if there was none.
    """

    status = 500

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail, status)
        self.detail = detail
        if status is not None:
            self.status = status

    def __str__(self) -> str:
        return self.detail


class AccessError(ServiceError):
    """No token, an unknown one (status 401), or one without the scope that this needs (403)."""

    status = 401


class NotFoundError(ServiceError):
    """There is no stream of this name, or no forecast with this id."""

    status = 404


class ConflictError(ServiceError):
    """It contradicts what the service knows, such as another outcome. Nothing was changed."""

    status = 409


class TooLargeError(ServiceError):
    """The request has more bytes or rows than the service takes at once. Nothing was changed."""

    status = 413


class UnavailableError(ServiceError):
    """The service cannot do this now: its disk is full, its database gone, it was asked too often.

    Attributes
    ----------
    retry_after : float or None
        Seconds after which to try again, if the service said so.
    """

    status = 503

    def __init__(
        self, detail: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(detail, status)
        self.args = (detail, status, retry_after)  # so that it travels between processes
        self.retry_after = retry_after


def shown(name: str) -> str:
    r"""Return a name as it can stand in a message, which is a line: quoted if it is not plain.

    Examples
    --------
    >>> print(shown("late"), shown("late "), shown("late\x1b[2J"))
    late 'late ' 'late\x1b[2J'
    """
    return name if name.isprintable() and name.strip() == name != "" else repr(name)


@contextmanager
def writing(path: Path | None, option: str) -> Iterator[None]:
    """Name the file and its option if the system refuses to write it; None is standard output.

    A reader that has closed its end of a pipe is no such case: that error stays as it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        name = "standard output" if path is None else shown(str(path))
        raise OSError(f"{name} cannot be written ({option}): {error.strerror or error}") from error
