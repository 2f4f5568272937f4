import numpy as np
from numpy.typing import NDArray

def solve_game(
    points: NDArray[np.int64],
    denominator: int,
    rounds: int,
    determined: bool,
    values: NDArray[np.float64],
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
