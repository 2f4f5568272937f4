"""The energy of residuals on the arc, and what it proves."""

from __future__ import annotations

from typing import Any

from truecast.arc import ArcEnergy, energy_of
from truecast.tally import Tally, tally_or_few

__all__ = ["ArcEnergy", "arc_energy"]


def arc_energy(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> ArcEnergy:
    r"""Energy of the residuals on the arc: two proved bounds of miscalibration, in one pass.

    .. math:: E = \sum_{s,t} (y_s - p_s)(y_t - p_t)\, K(p_s, p_t), \qquad
        K(p, q) = \text{rise}(\min(p, q))\, \text{fall}(\max(p, q))

    where fall(p) = h(1 - sqrt(p)), rise(p) = h(1 - sqrt(1 - p)) and
    h(x) = 121/123 (4 + 6 x - 30 x² + 45 x³) / (7/4 - x)². For any forecasts and any outcomes, the
    lower distance to calibration, in total, is at most 0.53552 sqrt(E), and the smooth
    calibration error at most 0.58334 sqrt(E) (docs/arc.md, theorem 2). `Arc` makes forecasts that
    keep E small, whatever happens.

    If the forecasts are right, the mean of E is `expected`: at most 1 a round. This is not a test:
    if forecasts are concentrated, chance alone varies E by as much as its mean, so a few times
    `expected` is no evidence. For a p-value, use `uncertainty(smooth_calibration_error, ...)`. E
    ignores sharpness. The bounds are upper bounds: they can be well above the true values, even
    above 1. `smooth_calibration_error` is exact, and `lower_calibration_distance` gives two close
    bounds; both are slower.

    Forecasts of exactly 0 and 1 are allowed. K(0, 0) is 56.2, so a wrong certainty counts as much
    as about 56 ordinary surprises.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. With real weights, `expected` is nan (it
        needs the squares of the weights, which a tally does not keep), and `energy` depends on the
        unit of the weights (E / T doubles if all weights do). The bounds per round do not.
    total
        Totals over all rounds: E itself rather than E / T.

    Returns
    -------
    ArcEnergy
        `energy`, `expected`, and the bounds `lower_distance` and `smooth_error`, rounded up.

    Raises
    ------
    InputError
        As in `Tally.from_predictions`; or if there is no round.

    Examples
    --------
    >>> import truecast as tc
    >>> found = tc.arc_energy([1, 0, 1, 1], [0.5, 0.5, 0.75, 0.75])
    >>> round(found.energy, 3), round(found.expected, 3)
    (0.332, 0.998)
    >>> tc.smooth_calibration_error([1, 0, 1, 1], [0.5, 0.5, 0.75, 0.75]) <= found.smooth_error
    True

    Notes
    -----
    O(n log n) to sort, then one pass, because K(p, q) is a product of a function of p and one of q.
    The bounds include every rounding error (docs/arc.md, section 6).
    """
    return energy_of(tally_or_few(y_true, y_prob, sample_weight), total=total)
