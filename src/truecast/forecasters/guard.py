"""The guard: follow a hint while the energy is within its budget (docs/adaptive.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truecast import _check, _core
from truecast._renamed import renamed
from truecast.errors import StateError
from truecast.ladder import MAX_ROUNDS
from truecast.ledger import certify, ledger_state, numbers_of, promised
from truecast.state import Saveable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from truecast.certificate import ArcCertificate

__all__ = ["BUDGETS", "Guard"]

BUDGETS = 1.05, 1000.0  # docs/adaptive.md, theorem 6


class Guard(_core.Guard, Saveable):
    r"""Follow any model's probabilities, the hints, and keep a proof of calibration.

    It repeats the hint if no outcome can then take the energy of the forecasts beyond a budget,
    which grows from round to round. Otherwise it moves from the hint towards the point where an
    outcome adds least energy. So calibrated hints stay unchanged, or nearly; other hints move as
    far as needed. Whatever the hints and the outcomes, after T rounds

    .. math:: E \le C (T + 1150), \qquad L \le 0.53552 \sqrt{C (T + 1150)} + 1.742\, T^{1/3}

    where C is `budget` and L the lower distance to calibration, in total: about 1.07 sqrt(T + 1150)
    for C = 4 (docs/adaptive.md, theorems 6, 7 and 10; the first is without rounding). The live
    `certificate` is smaller if the hints are good.

    It does not make hints sharper: its Brier score is about the same as theirs if they are
    calibrated, and can be better or worse if they are not.

    Parameters
    ----------
    budget
        C, from 1.05 to 1,000: how much energy a round may add. The bounds grow with its square
        root. A small budget moves hints often; one beyond 4, hardly ever.
    nudge
        Whether to correct each hint a little for the errors of nearby forecasts so far. That
        removes lasting errors of a hint and costs little, but hints no longer come out exactly
        unchanged.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs O(log m) for m knots, the points of the arc that collect forecasts: at most about
    4 T^(2/3), and 4,096 at first. The state is O(m). One object serves one thread at a time. For
    outcomes that come late, and groups, use `Recalibrator`.

    Examples
    --------
    >>> g = Guard()
    >>> g.predict(0.83)  # while nothing speaks against the hint, it is followed
    0.83
    >>> g.observe(1)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(20_000) < 0.6
    >>> p = g.forecast_many(np.full(20_000, 0.9), y)  # the hint says 90 %, the truth is 60 %
    >>> bool(abs(p[-10_000:].mean() - y[-10_000:].mean()) < 0.01), g.certificate.per_round < 0.02
    (True, True)
    """

    _oldest = 2

    _options = ("_budget", "_nudge")

    def __init__(self, *, budget: float = 4.0, nudge: bool = False) -> None:
        self._budget = _check.within("budget", budget, *BUDGETS)
        self._nudge = _check.flag("nudge", nudge)
        super().__init__(self._budget, self._nudge)

    @property
    def budget(self) -> float:
        """C: how much the energy may grow a round."""
        return self._budget

    @property
    def nudge(self) -> bool:
        """Whether hints are corrected for the errors of nearby forecasts."""
        return self._nudge

    def forecast_many(
        self, hints: ArrayLike, outcomes: ArrayLike, *, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Play a round for every hint: make a forecast, then learn the outcome.

        The same as ``[(g.predict(h), g.observe(y))[0] for h, y in zip(hints, outcomes)]``, bit for
        bit, including the state, but several times faster. If interrupted, for example by Ctrl-C,
        it has learned nothing; only `out` may hold forecasts.

        Parameters
        ----------
        hints
            What to follow, in order: one number in [0, 1] a round.
        outcomes
            What happened: 0 or 1, one for each hint.
        out
            Where to write the forecasts, if not to a new array: float64, contiguous, one for each
            outcome.

        Returns
        -------
        forecasts
            One a round, each made before its outcome was used.

        Raises
        ------
        InputError
            If a hint is not in [0, 1], an outcome is not 0 or 1, or the lengths differ. Nothing
            changes.
        """
        h, y = _core.scored("hints", hints, outcomes)
        said = np.empty(len(y)) if out is None else _check.output(out, y, h)
        self._run(h, y, said)
        return said

    guard_many = renamed("guard_many", forecast_many)

    def a_priori(self, rounds: int) -> float:
        """The bound on CalDist after this many rounds that is proved before the first."""
        return promised(
            _check.whole_number("rounds", rounds, least=0, most=MAX_ROUNDS), self._budget
        )

    @property
    def certificate(self) -> ArcCertificate:
        """What is proved about the forecasts so far. Costs O(knots)."""
        return certify(self._parts())

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return ledger_state(self._saved())

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        numbers = numbers_of(state, most=1)
        late, lost = (numbers["groups"][name][0] for name in ("late", "lost"))
        if late or lost or numbers["reserved"] or numbers["most_late"]:
            raise StateError("the saved state of a guard must await no late outcomes")
        try:
            self._load(numbers)
        except ValueError as error:
            raise StateError(f"the saved state of a guard must fit together: {error}") from error
