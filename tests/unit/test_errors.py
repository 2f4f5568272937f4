from __future__ import annotations

import pickle

import pytest

import truecast as tc
from truecast import errors


def test_the_tree_is_as_drawn() -> None:
    assert issubclass(tc.InputError, (tc.TruecastError, ValueError))
    assert issubclass(tc.TicketError, tc.InputError)
    assert issubclass(tc.StateError, (tc.TruecastError, ValueError))
    assert issubclass(tc.VersionError, tc.StateError)
    assert issubclass(tc.OrderError, (tc.TruecastError, RuntimeError))
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), tc.TruecastError)
        assert name in (errors.__doc__ or "")


@pytest.mark.parametrize(
    "error",
    [
        tc.InputError("outcomes", "must be 0 or 1", 2, position=(3, 4)),
        tc.TicketError("ticket", "must be one whose outcome is awaited", 7),
        tc.StateError("torn"),
        tc.VersionError("new"),
        tc.OrderError("early"),
    ],
)
def test_errors_travel_between_processes(error: tc.TruecastError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_value_that_cannot_be_shown_does_not_hide_the_error() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert (
        str(tc.InputError("x", "must be y", Broken()))
        == "x must be y, got something of type Broken"
    )
    assert (
        str(tc.InputError("x", "must be y", 10**5000)) == "x must be y, got something of type int"
    )
