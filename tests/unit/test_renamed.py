"""Old names of methods do what the new ones do, and say so."""

from __future__ import annotations

from typing import Any

import pytest

import truecast as tc

ROUNDS = ([0.2, 0.7, 0.4], [0, 1, 1])


@pytest.mark.parametrize(
    ("make", "old", "arguments"),
    [
        (tc.Recalibrator, "recalibrate_many", ROUNDS),
        (tc.Guard, "guard_many", ROUNDS),
        (tc.hints.Platt, "follow_many", ROUNDS),
        (lambda: tc.OneStepAhead(grid=3), "answer_many", ROUNDS[1:]),
    ],
)
def test_an_old_name_still_works_and_says_the_new_one(make: Any, old: str, arguments: Any) -> None:
    kind = type(make()).__name__
    with pytest.warns(DeprecationWarning, match=f"{kind}.{old} is now {kind}.forecast_many"):
        said = getattr(make(), old)(*arguments)
    assert said.tolist() == make().forecast_many(*arguments).tolist()


def test_a_subclass_with_its_own_batch_is_asked_by_the_old_name_too() -> None:
    class Loud(tc.Guard):
        def forecast_many(self, *rounds: Any, **options: Any) -> Any:
            return "loud"

    with pytest.warns(DeprecationWarning, match="Loud.guard_many"):
        assert Loud().guard_many(*ROUNDS) == "loud"
