"""The lower distance to calibration, between two proven bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast.measures.corp import isotonic_blocks
from truecast.tally import Tally, as_tally

__all__ = ["LowerDistance", "lower_calibration_distance"]

_NODES = 512  # to start with, besides few distinct forecasts
_ROUNDS = 30
_MOST_NODES = 1 << 12
_EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False)
class LowerDistance:
    """What `lower_calibration_distance` returns.

    Attributes
    ----------
    lower, upper : float
        Proven: the lower distance to calibration is between them, rounding included. Means per round, or totals if
        those were asked for.
    nodes, zero_prices, one_prices : arrays
        Prices A and B at the nodes, linear in between: the witness of `lower`, unless that is 0, which needs none. Both
        change no faster than p, and (1 - v) A(v) + v B(v) <= 0 for all v. The mean over all rounds of A(p) for a zero
        and B(p) for a one is `lower` and the allowance for rounding.
    values, masses : arrays
        Calibrated forecasts, and the share of all rounds (or their number, for totals) that each receives: the witness
        of `upper`. Moving the zeros to ``(1 - values) * masses`` and the ones to ``values * masses`` costs `upper` less
        the allowance for rounding.
    """

    lower: float
    upper: float
    nodes: NDArray[np.float64]
    zero_prices: NDArray[np.float64]
    one_prices: NDArray[np.float64]
    values: NDArray[np.float64]
    masses: NDArray[np.float64]


def lower_calibration_distance(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    rtol: float = 1e-3,
    total: bool = False,
) -> LowerDistance:
    """Bound the lower distance to calibration from both sides.

    The least mean change of the forecasts that makes them perfectly calibrated, if a round may be split into parts with
    different forecasts (Błasiok, Gopalan, Hu and Nakkiran, 2023). It is at most the distance to calibration, which
    allows no splitting, and at most the calibration error by value; and between half and twice the smooth error.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    rtol
        Stop when the bounds are this close, relative to the upper one. It is a wish: it stops as well when going on
        does not help, and both bounds are valid whenever it stops.
    total
        Totals over all rounds rather than means.

    Examples
    --------
    >>> bounds = lower_calibration_distance([1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5])
    >>> round(bounds.lower, 3), round(bounds.upper, 3)
    (0.25, 0.25)

    Notes
    -----
    A linear programme in prices at nodes, solved by HiGHS; its solution is then repaired so that the prices hold
    exactly and everywhere, not only at the nodes; nodes are added where they did not (docs/measures.md, theorem 4).
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    rtol = _check.between("rtol", rtol, 0, 1)
    nodes = _first_nodes(tally)
    shares = tally.zeros / tally.total, tally.ones / tally.total
    # more than all sums here can be off, each a mean of numbers up to 1 in magnitude
    slack = (len(tally.p) + 1000) * _EPSILON
    best: dict[str, Any] = {"lower": -math.inf, "upper": math.inf}
    gap, stalled = math.inf, 0
    for _ in range(_ROUNDS):
        masses = np.zeros((2, len(nodes)))
        _core.spread_counts(tally.p, tally.zeros, tally.ones, nodes, masses)
        masses /= tally.total
        prices, atoms = _solve(nodes, masses)
        lowered, places, excess = _repaired(*_lowest(nodes, prices, tally.p))
        lower = max(0.0, float((masses * lowered[:, np.searchsorted(places, nodes)]).sum()) - slack)
        if lower > best["lower"]:
            best |= {"lower": lower, "nodes": places, "zero_prices": lowered[0], "one_prices": lowered[1]}
        values, atoms = _calibrated(*_unrounded(nodes, atoms, masses.sum(axis=0), tally), tally)
        upper = slack + sum(
            _core.transport_cost(tally.p, shares[side], values, part * atoms)
            for side, part in enumerate((1 - values, values))
        )
        if upper < best["upper"]:
            best |= {"upper": upper, "values": values, "masses": atoms}
        gap, previous = best["upper"] - best["lower"], gap
        stalled = stalled + 1 if gap > 0.7 * previous else 0
        if gap <= rtol * best["upper"] or stalled == 2 or not len(excess) or len(nodes) > _MOST_NODES:
            break
        nodes = np.union1d(nodes, excess)
    if total:
        best |= {side: best[side] * tally.total for side in ("lower", "upper")}
        best["masses"] = best["masses"] * tally.total
    for name in ("nodes", "zero_prices", "one_prices", "values", "masses"):
        best[name].setflags(write=False)
    return LowerDistance(**best)


def _first_nodes(tally: Tally) -> NDArray[np.float64]:
    _, zeros, ones = isotonic_blocks(tally.zeros, tally.ones)
    rates = ones / (zeros + ones)  # where calibrated forecasts are likely to be
    places = [np.linspace(0, 1, 65), rates[:: max(1, len(rates) // _NODES)]]
    if len(tally.p) <= _NODES:
        places.append(tally.p)
    else:
        places += [np.linspace(0, 1, _NODES + 1), tally.p[:: len(tally.p) // _NODES]]
    return np.unique(np.concatenate(places))


def _solve(nodes: NDArray[np.float64], masses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return prices A, B at the nodes that are worth most, and the masses of the dual: calibrated forecasts."""
    import highspy  # slow to import, and for this alone

    n = len(nodes)
    gaps = np.diff(nodes)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = 2 * n, 3 * n - 2
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = masses.reshape(-1)
    program.col_lower_, program.col_upper_ = np.full(2 * n, -1.0), np.full(2 * n, 1.0)
    program.row_lower_ = np.concatenate((-gaps, -gaps, np.full(n, -highspy.kHighsInf)))
    program.row_upper_ = np.concatenate((gaps, gaps, np.zeros(n)))
    # rows: A_k+1 - A_k, B_k+1 - B_k, (1 - v_k) A_k + v_k B_k
    step = np.arange(n - 1)
    both = np.concatenate((step, n + step))
    columns = np.concatenate(
        (np.stack((both, both + 1), 1).reshape(-1), np.stack((np.arange(n), n + np.arange(n)), 1).reshape(-1))
    )
    values = np.concatenate((np.tile([-1.0, 1.0], 2 * n - 2), np.stack((1 - nodes, nodes), 1).reshape(-1)))
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = 2 * np.arange(3 * n - 1)
    program.a_matrix_.index_, program.a_matrix_.value_ = columns, values
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(name, 1e-10)
    solver.passModel(program)
    solver.run()
    solution = solver.getSolution()
    prices = np.array(solution.col_value).reshape(2, n)
    return prices, np.maximum(np.abs(np.array(solution.row_dual)[2 * n - 2 :]), 0.0)


def _lowest(
    nodes: NDArray[np.float64], prices: NDArray[np.float64], p: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return prices that are 1-Lipschitz in all, and between nodes without forecasts as low as that allows.

    At the nodes, the greatest 1-Lipschitz functions below the given ones. Between two nodes with no forecast inside,
    prices may fall from both ends towards a kink, which becomes a node.
    """
    a, b = np.minimum(
        np.minimum.accumulate(prices - nodes, axis=1) + nodes,
        np.minimum.accumulate((prices + nodes)[:, ::-1], axis=1)[:, ::-1] - nodes,
    )
    left, right = nodes[:-1], nodes[1:]
    free = np.searchsorted(p, left, side="right") == np.searchsorted(p, right)
    kinks = [(left + right + side[:-1] - side[1:])[free] / 2 for side in (a, b)]
    places = np.unique(np.concatenate((nodes, *kinks)))
    cell = np.clip(np.searchsorted(nodes, places, side="right") - 1, 0, len(nodes) - 2)
    lowest = [
        np.maximum(side[cell] - (places - nodes[cell]), side[cell + 1] - (nodes[cell + 1] - places)) for side in (a, b)
    ]
    straight = [np.interp(places, nodes, side) for side in (a, b)]
    return places, np.where(free[cell] & ~np.isin(places, nodes), lowest, straight)


def _repaired(
    places: NDArray[np.float64], prices: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return prices that keep the rule on (1 - v) A + v B too, their places, and where the given ones broke it.

    Between places that is a parabola; lower everything by its greatest value: taking d off A and off B takes d off it.
    """
    a, b = prices[:, :-1]
    left, gaps = places[:-1], np.diff(places)
    slope_a, slope_b = np.diff(prices, axis=1) / gaps
    # at left + x: q0 + q1 x + q2 x^2
    q0, q1, q2 = (1 - left) * a + left * b, (1 - left) * slope_a + left * slope_b + b - a, slope_b - slope_a
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(q2 < 0, np.clip(-q1 / (2 * q2), 0, gaps), 0.0)
    height = q0 + q1 * x + q2 * x * x
    worst = max(0.0, float(height.max()), float(((1 - places) * prices[0] + places * prices[1]).max()))
    broken = (height > worst / 16) & (left + x > left) & (left + x < places[1:])
    # there, and close to both ends: the parabola may touch 0 at an end, and must not rise from it
    new = [(left + part)[broken] for part in (x, gaps / 16, gaps * 15 / 16)]
    return prices - (worst + 8 * _EPSILON), places, np.concatenate(new)


def _unrounded(
    nodes: NDArray[np.float64], atoms: NDArray[np.float64], weights: NDArray[np.float64], tally: Tally
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return calibrated forecasts where the forecasts are, if these are many more than the nodes.

    Else each would pay for being moved to a node. Each forecast gets its share of the nodes around it; masses at nodes
    without forecasts stay there.
    """
    if len(tally.p) <= 2 * len(nodes):
        return nodes, atoms
    density = np.divide(atoms, weights, out=np.zeros_like(atoms), where=weights > 0)
    masses = np.interp(tally.p, nodes, density) * (tally.weights / tally.total)
    alone = (weights == 0) & (atoms > 0)
    values, masses = np.append(tally.p, nodes[alone]), np.append(masses, atoms[alone])
    order = np.argsort(values, kind="stable") if alone.any() else slice(None)
    values, masses = values[order], masses[order]
    # a slight tilt gives back the numbers of zeros and ones
    moments = [float(masses @ values**k) for k in range(3)]
    matrix, missing = [moments[:2], moments[1:]], [1.0 - moments[0], tally.rate - moments[1]]
    if np.linalg.matrix_rank(matrix) == 2:
        level, slope = np.linalg.solve(matrix, missing)
        masses = masses * np.maximum(1.0 + level + slope * values, 0.0)
    return values, masses


def _calibrated(
    nodes: NDArray[np.float64], masses: NDArray[np.float64], tally: Tally
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values and masses, per round, that take all the zeros and all the ones: calibrated up to rounding."""
    of_zero, of_one = float(((1 - nodes) * masses).sum()), float((nodes * masses).sum())
    shrink = min(1.0, (1 - tally.rate) / of_zero if of_zero else 1.0, tally.rate / of_one if of_one else 1.0)
    masses = masses * shrink  # what is left over is foretold with certainty, which is calibrated
    masses[0] += max(0.0, (1 - tally.rate) - of_zero * shrink)
    masses[-1] += max(0.0, tally.rate - of_one * shrink)
    used = masses > 0
    return nodes[used], masses[used]
