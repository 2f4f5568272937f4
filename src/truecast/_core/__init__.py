"""The compiled core: kernels that check nothing, for the public edge to build on."""

from truecast._core.kernels import Ladder, run_streams, sums_of_streams

__all__ = ["Ladder", "run_streams", "sums_of_streams"]
