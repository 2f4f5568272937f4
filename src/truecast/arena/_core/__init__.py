"""The arena's own kernels: the minimax game, solved backwards. Its callers check the arguments."""

from truecast.arena._core.kernels import bound_game, solve_game

__all__ = ["bound_game", "solve_game"]
