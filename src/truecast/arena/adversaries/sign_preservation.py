"""Play the sign-preservation game well, and turn the signs into calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from truecast import _check
from truecast.arena.adversaries.base import Adversary
from truecast.arena.game import Round

__all__ = ["SignPreservation"]

Board = tuple[int, ...]  # a sign in each cell: 1, -1, or 0 if it is empty
_TOSSING = 0.9  # share of the rounds that epochs may take; the rest freezes what is on the board


class SignPreservation(Adversary):
    r"""Builds up errors of one sign in cells of [1/4, 3/4] where later rounds cannot pay them back.

    The game (Qiao and Valiant 2021; with reuse, Dagan et al. 2024): cells in a row, empty at first.
    A pointer names an empty cell; all minus signs to its left and all plus signs to its right go; a
    labeler writes a sign into it. The pointer stops when it likes, and scores the signs that are
    left. It is solved exactly here, for few cells.

    The adversary is the pointer, the forecaster the labeler. A move is an epoch of coins whose rate
    is the middle of the named cell, until the forecasts of the epoch are off in sum by the root of
    its length, which coins are by chance now and then; the sign of that error is what the labeler
    wrote. A plus is an excess of ones at forecasts in the cell: only rates below it could pay it
    back. In the end constant outcomes, ones if there are no fewer plus than minus signs, keep all
    signs of that kind.

    It aims at the calibration error by value. Dagan et al. prove a lower bound of T\ :sup:`0.54`
    for it by this game, at a scale that no game here has; for what is played here nothing is
    proved. Rules of the game are as in Dai and Fishelson (2026); how the signs become an adversary,
    the lengths above all, is reconstructed from the scaling of the proofs, not taken from a paper.
    Sees past forecasts, but not the current one.

    Parameters
    ----------
    cells
        How many, 2 to 8. The game is played for twice as many moves.
    """

    random = True

    def __init__(self, cells: int = 6) -> None:
        self._cells = _check.whole_number("cells", cells, least=2, most=8)

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        moves = 2 * self._cells
        length = max(int(_TOSSING * game.rounds) // moves, 1)
        board: Board = (0,) * self._cells
        while moves and (cell := best_move(board, moves)) is not None:
            rate = 0.25 + (cell + 0.5) / (2 * self._cells)
            surplus = 0.0
            for u in game.rng.random(length).tolist():
                yield int(u < rate)
                surplus += game.outcomes[-1] - game.said[-1]
                if surplus * surplus >= length:
                    break
            board = after(board, cell, 1 if surplus > 0 else -1)
            moves -= 1
        # ones lift forecasts out of the cells and leave each plus behind; zeros each minus
        while True:
            yield int(sum(board) >= 0)


def after(board: Board, cell: int, sign: int) -> Board:
    """Return the board after the labeler has written a sign into the cell."""
    kept = [0 if other * (place - cell) > 0 else other for place, other in enumerate(board)]
    kept[cell] = sign
    return tuple(kept)


@cache
def value(board: Board, moves: int) -> int:
    """Return the signs left when both play their best for this many moves."""
    score = sum(map(abs, board))
    if moves == 0:
        return score
    return max(
        [score, *(_worst(board, cell, moves) for cell, sign in enumerate(board) if sign == 0)]
    )


def best_move(board: Board, moves: int) -> int | None:
    """Return the cell to name, or None to stop."""
    stop = sum(map(abs, board))
    cells = [cell for cell, sign in enumerate(board) if sign == 0]
    best = max(
        cells,
        key=lambda cell: (_worst(board, cell, moves), -abs(2 * cell + 1 - len(board))),
        default=None,
    )
    return None if best is None or _worst(board, best, moves) <= stop else best


def _worst(board: Board, cell: int, moves: int) -> int:
    return min(value(after(board, cell, sign), moves - 1) for sign in (1, -1))
