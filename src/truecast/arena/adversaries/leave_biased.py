"""Up the ladder, and no point left in balance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.arena.adversaries.base import LadderAdversary
from truecast.arena.game import Round

__all__ = ["LeaveBiased"]


class LeaveBiased(LadderAdversary):
    """Goes down a ladder and up again, and leaves every point biased.

    Every point is left with as large a surplus of ones as possible; then come ones only. On the way
    up it goes back and forth across a point, so that only the bias of that point changes, and moves
    on when the bias is lowest (docs/theory.md, section 5). Then all biases have one sign, and if
    the deviations have it too, the sum of y - p, a lower bound of CalDist, is near the proved bound
    of the ladder. Sees the forecast and its ladder, so it plays against ladders only.

    Parameters
    ----------
    stay
        The least number of rounds to credit to each point of the lower half.
    look
        How many more rounds to go back and forth for a lower bias.
    fine
        Of ladders that split their cells: a cell below a point g of the lower half is to become no
        wider than fine / (g (5/4 - g)), which makes the most of the rounds if cells are split at
        1/4.
    towards
        0 is the mirror image.
    """

    def __init__(
        self, stay: int = 0, look: int = 16, fine: float | None = None, towards: Literal[0, 1] = 1
    ) -> None:
        self._stay = _check.whole_number("stay", stay, least=0, most=2**53)
        self._look = _check.whole_number("look", look, least=0, most=2**20)
        self._fine = None if fine is None else _check.between("fine", fine, 0.0, float("inf"))
        self._towards = _check.outcome(towards, name="towards")

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        f = game.forecaster
        passed = stayed = 0
        whole = f.denominator
        while True:
            points, biases, cell = self._seen(f)
            # the lowest point that is not left behind
            at = int(np.searchsorted(points, passed, side="right"))
            point = int(points[at])
            if (
                cell == at
                and point < whole
                and self._leaves(whole, point, int(biases[at]), int(points[at - 1]), stayed)
            ):
                passed = point
                stayed = 0
                continue
            y = int(cell < at)
            stayed += cell + y == at
            yield y if self._towards else 1 - y

    def _seen(self, f: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        if self._towards:
            return f.points, f.biases, f.open_cell
        return f.denominator - f.points[::-1], -f.biases[::-1], f.cells - 1 - f.open_cell

    def _leaves(self, whole: int, point: int, bias: int, below: int, stayed: int) -> bool:
        if bias >= 0:
            return False
        if 2 * point <= whole:
            g = point / whole
            width = (point - below) / whole
            if stayed < self._stay or (
                self._fine is not None and width * g * (1.25 - g) > self._fine
            ):
                return False
        return not _falls(whole, point, bias, self._look)


def _falls(whole: int, point: int, bias: int, look: int) -> bool:
    """Whether crossing a point back and forth, from above, lowers its bias within some rounds."""
    now = bias
    above = True
    for _ in range(look):
        now += point if above else point - whole
        above = now <= 0 if above else now < 0
        if now < bias:
            return True
    return False
