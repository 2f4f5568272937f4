"""Types of the compiled core; the classes and functions that users meet are built on it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW: int
MOST_CELLS: int
WHOLE: int

class Ladder:
    def __init__(
        self,
        points: NDArray[np.int64],
        denominator: int,
        says: NDArray[np.int64],
        limits: NDArray[np.int64],
        cell: int,
    ) -> None: ...
    def predict(self) -> float: ...
    def observe(self, outcome: object) -> None: ...
    def _settle(self, outcome: object) -> float: ...
    def _run(self, outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None: ...
    def _restore(
        self,
        biases: NDArray[np.int64],
        cell: int,
        rounds: int,
        high: int,
        low: int,
        squared_error: float,
        issued: bool,
    ) -> None: ...
    def _sums(self) -> tuple[int, int, int, int]: ...
    @property
    def points(self) -> NDArray[np.int64]: ...
    @property
    def biases(self) -> NDArray[np.int64]: ...
    @property
    def denominator(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def open_cell(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def issued(self) -> bool: ...
    @property
    def squared_error(self) -> float: ...
    @property
    def _deviation_words(self) -> tuple[int, int]: ...

class ArcTree:
    def __init__(self) -> None: ...
    def predict(self) -> float: ...
    def observe(self, outcome: object) -> None: ...
    def _run(self, outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None: ...
    def _restore(
        self, p: NDArray[np.float64], zeros: NDArray[np.int64], ones: NDArray[np.int64], issued: bool
    ) -> None: ...
    def _take(self, other: ArcTree) -> None: ...
    def _said(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]: ...
    @property
    def knots(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def issued(self) -> bool: ...

class Hint:
    def __init__(self, kind: str, keep: float, prior: float, members: list[Hint]) -> None: ...
    def predict(self, score: object) -> float: ...
    def issue(self, score: object) -> tuple[float, list[float]]: ...
    def learn(self, score: object, outcome: object, notes: object = None) -> None: ...
    def _follow(self, scores: NDArray[np.float64], outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None: ...
    def _layout(self) -> list[tuple[int, str, int, bool, float, float]]: ...
    def _numbers(self) -> NDArray[np.float64]: ...
    def _restore(self, numbers: NDArray[np.float64]) -> bool: ...

class SplitLadder:
    def _sums(self) -> tuple[int, int, int, int]: ...
    @property
    def points(self) -> NDArray[np.int64]: ...
    @property
    def biases(self) -> NDArray[np.int64]: ...
    @property
    def spent(self) -> NDArray[np.uint64]: ...
    @property
    def cells(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def squared_error(self) -> float: ...
    @property
    def _deviation(self) -> int: ...

class Walk(SplitLadder):
    def __init__(self, points: NDArray[np.int64], threshold: int, middle: bool) -> None: ...
    def predict(self) -> float: ...
    def observe(self, outcome: object) -> None: ...
    def _run(self, outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None: ...
    def _restore(
        self,
        points: NDArray[np.int64],
        biases: NDArray[np.int64],
        spent: NDArray[np.uint64],
        rounds: int,
        high: int,
        low: int,
        squared_error: float,
        cell: int,
        issued: bool,
    ) -> None: ...
    @property
    def open_cell(self) -> int: ...
    @property
    def issued(self) -> bool: ...

class Guarded(SplitLadder):
    def __init__(self, points: NDArray[np.int64], slack: int, threshold: int, nudges: bool) -> None: ...
    def predict(self, hint: object) -> float: ...
    def observe(self, outcome: object) -> None: ...
    def _run(self, hints: NDArray[np.float64], outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None: ...
    def _issue(self, hint: float) -> tuple[int, int, float]: ...
    def _resolve(self, low: int, high: int, said: float, outcome: bool) -> None: ...
    def _give_up(self) -> None: ...
    def _restore(
        self,
        points: NDArray[np.int64],
        biases: NDArray[np.int64],
        spent: NDArray[np.uint64],
        rounds: int,
        high: int,
        low: int,
        squared_error: float,
        asked: tuple[int, int, float],
        issued: bool,
        late: int,
        most_late: int,
        lost: int,
        unknown_high: int,
        unknown_low: int,
        misses: NDArray[np.float64],
        variance: float,
        lag: float,
    ) -> None: ...
    @property
    def misses(self) -> NDArray[np.float64]: ...
    @property
    def variance(self) -> float: ...
    @property
    def lag(self) -> float: ...
    @property
    def open_cells(self) -> NDArray[np.uint8]: ...
    @property
    def _asked(self) -> tuple[int, int, float]: ...
    @property
    def issued(self) -> bool: ...
    @property
    def unresolved(self) -> int: ...
    @property
    def most_unresolved(self) -> int: ...
    @property
    def given_up(self) -> int: ...
    @property
    def _unknown(self) -> int: ...

def recalibrate(
    hint: Hint,
    guards: Sequence[Guarded],
    codes: NDArray[np.int64],
    scores: NDArray[np.float64],
    outcomes: NDArray[np.uint8],
    said: NDArray[np.float64],
) -> None: ...
def settle(hint: Hint, guard: Guarded, score: float, outcome: bool) -> None: ...
def settle_late(
    hint: Hint, guard: Guarded, score: float, outcome: bool, notes: object, low: int, high: int, said: float
) -> None: ...
def place_many(
    hint: Hint,
    guards: Sequence[Guarded],
    codes: NDArray[np.int64],
    scores: NDArray[np.float64],
    said: NDArray[np.float64],
) -> None: ...
def run_streams(
    start: Ladder,
    outcomes: NDArray[np.uint8],
    said: NDArray[np.float64],
    biases: NDArray[np.int64],
    cells: NDArray[np.int64],
    deviations: NDArray[np.uint64],
    squared_errors: NDArray[np.float64],
    threads: int,
) -> None: ...
def sums_of_streams(ladder: Ladder, biases: NDArray[np.int64], out: NDArray[np.int64]) -> None: ...
def pack_rounds(
    p: NDArray[np.float64], y: NDArray[Any], pivot: float, below: bool, keys: NDArray[np.uint64]
) -> int: ...
def unpack_rounds(keys: NDArray[np.uint64], zeros: NDArray[np.int64], ones: NDArray[np.int64]) -> int: ...
def weigh_rounds(
    p: NDArray[np.float64],
    y: NDArray[Any],
    weights: NDArray[Any],
    pivot: float,
    below: bool,
    forecasts: NDArray[np.float64],
    zeros: NDArray[Any],
    ones: NDArray[Any],
) -> tuple[int, int]: ...
def weigh_few(
    p: NDArray[np.float64],
    y: NDArray[Any],
    weights: NDArray[Any],
    forecasts: NDArray[np.float64],
    zeros: NDArray[Any],
    ones: NDArray[Any],
) -> int: ...
def count_few(
    p: NDArray[np.float64], y: NDArray[Any], forecasts: NDArray[np.float64], counts: NDArray[np.int64]
) -> int: ...
def merge_tallies(
    p1: NDArray[np.float64],
    zeros1: NDArray[Any],
    ones1: NDArray[Any],
    p2: NDArray[np.float64],
    zeros2: NDArray[Any],
    ones2: NDArray[Any],
    p: NDArray[np.float64],
    zeros: NDArray[Any],
    ones: NDArray[Any],
) -> int: ...
def bin_rounds(
    p: NDArray[np.float64], y: NDArray[Any], edges: NDArray[np.float64], out: NDArray[np.uint64]
) -> bool: ...
def sum_forecasts(
    p: NDArray[np.float64],
    zeros: NDArray[np.int64],
    ones: NDArray[np.int64],
    starts: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None: ...
def isotonic(
    zeros: NDArray[Any],
    ones: NDArray[Any],
    starts: NDArray[np.int64],
    block_zeros: NDArray[Any],
    block_ones: NDArray[Any],
) -> int: ...
def smooth_error(
    p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any], total: float, witness: NDArray[np.float64]
) -> float: ...
def arc_energy(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any]) -> tuple[float, float, float]: ...
def laplace_sum(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any], scale: float) -> float: ...
def u_calibration_sum(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any]) -> float: ...
def decision_sum(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any]) -> float: ...
def residual_sum(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any]) -> float: ...
def brier_sum(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any]) -> float: ...
def log_sum(p: NDArray[np.float64], zeros: NDArray[Any], ones: NDArray[Any]) -> float: ...
def transport_cost(
    x: NDArray[np.float64], from_: NDArray[np.float64], v: NDArray[np.float64], to: NDArray[np.float64]
) -> float: ...
def solve_prices(
    nodes: NDArray[np.float64],
    masses: NDArray[np.float64],
    tolerance: float,
    most: int,
    prices: NDArray[np.float64],
    atoms: NDArray[np.float64],
) -> int: ...
def spread_counts(
    p: NDArray[np.float64],
    zeros: NDArray[Any],
    ones: NDArray[Any],
    nodes: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def spread_residuals(
    p: NDArray[np.float64],
    zeros: NDArray[Any],
    ones: NDArray[Any],
    nodes: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def search_chains(
    zeros: NDArray[np.int64],
    zero_prices: NDArray[np.int64],
    ones: NDArray[np.int64],
    one_prices: NDArray[np.int64],
    shift: int,
    nodes: NDArray[np.float64],
    prices_zero: NDArray[np.float64],
    prices_one: NDArray[np.float64],
    mirrored: bool,
    budget: float,
    cut: float,
    profile: bool,
    slop: float,
    bound_values: NDArray[np.float64],
    bound_lengths: NDArray[np.float64],
    guide_values: NDArray[np.float64],
    guide_zeros: NDArray[np.float64],
    reach: float,
    tube_low: NDArray[np.int64],
    tube_high: NDArray[np.int64],
    memory: int,
    seconds: float,
    stop: NDArray[np.uint8],
    state: NDArray[np.float64],
    heavy: int,
) -> dict[str, Any]: ...
def solve_game(
    points: NDArray[np.int64], denominator: int, rounds: int, determined: bool, values: NDArray[np.float64]
) -> None: ...
def bound_game(
    points: NDArray[np.int64],
    denominator: int,
    rounds: int,
    determined: bool,
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    said: NDArray[np.int64],
    chances: NDArray[np.float64],
) -> float: ...
