"""What the service answers when it does not do what was asked.

::

    ServeError    (a TruecastError)
    ├── BadRequest    (also an InputError)   an argument breaks a rule
    ├── NotFound                             there is no such stream
    ├── Conflict                             it contradicts what was said before
    ├── TooLarge                             more rows than one request may have
    └── Unavailable                          it cannot be made durable now; try again

Whichever it is, nothing was changed, with one exception: `Unavailable` may mean that the database
did not answer in time whether it has written. Repeat the request with the same ids: it is then
applied once.
"""

from __future__ import annotations

from truecast.errors import InputError, TruecastError

__all__ = ["BadRequest", "Conflict", "NotFound", "ServeError", "TooLarge", "Unavailable"]


class ServeError(TruecastError):
    """Everything that a service refuses."""

    status = 500


class BadRequest(ServeError, InputError):
    """An argument breaks a rule."""

    status = 422

    @classmethod
    def of(cls, error: InputError) -> BadRequest:
        """Return the same as an answer of the service."""
        return cls(error.argument, error.rule, error.value, error.position)


class NotFound(ServeError):
    """There is no such stream."""

    status = 404


class Conflict(ServeError):
    """It contradicts what was said before."""

    status = 409


class TooLarge(ServeError):
    """More rows than one request may have."""

    status = 413


class Unavailable(ServeError):
    """It cannot be made durable now.

    Attributes
    ----------
    reason : str
        What is wrong with the database.
    retry_after : float
        Seconds after which another try makes sense.
    """

    status = 503

    def __init__(self, reason: str, retry_after: float = 1.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
