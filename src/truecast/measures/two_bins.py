"""The averaged two-bin calibration error: a calibration error that rewards honesty."""

from __future__ import annotations

from typing import Any

from truecast import _core
from truecast.tally import Tally, tally_or_few

__all__ = ["averaged_two_bin_error"]


def averaged_two_bin_error(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None
) -> float:
    r"""ATB, a truthful calibration error: over a random threshold, the squared error of two bins.

    .. math:: \text{ATB} = \int_0^1 \Big(\frac1T \sum_{p_t < q} (y_t - p_t)\Big)^2
        + \Big(\frac1T \sum_{p_t \ge q} (y_t - p_t)\Big)^2 \, dq

    after Hartline, Hu and Wu (2025), who prove that it is *truthful*: if outcomes are drawn with
    certain probabilities, independently, no forecasts that were fixed before have a smaller ATB on
    average than these. For most other calibration errors, one gains by lying a little. For right
    forecasts the mean is :math:`\sum_t p_t (1 - p_t) / T^2`: it falls as 1 / T.

    It is a square: at most twice the smooth calibration error, and at least 2/9 of that error's
    square (docs/measures.md, theorem 10). It does not see sharpness. That honesty is best on
    average does not make it a score to compare models by: always saying the mean outcome has 0.
    Nor is a value above the mean for right forecasts a test; see `uncertainty`.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.

    Examples
    --------
    >>> import truecast as tc
    >>> tc.averaged_two_bin_error([1, 0], [0.75, 0.25])  # two misses, of 1/4 and -1/4
    0.015625

    Notes
    -----
    O(n) after the tally: between neighbouring forecasts the two sums do not change. No threshold is
    drawn.
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    return _core.two_bin_sum(rounds) / rounds.total**2
