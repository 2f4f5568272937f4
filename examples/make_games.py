"""Make examples/games.csv: results of made-up football games, and a model's three probabilities.

The model is too sure of itself: its odds are those of the truth to the power of 1.4. Probabilities
have three decimals and sum to 1. The league of a game has nothing to do with its result.
"""

import csv
from pathlib import Path

import numpy as np

RESULTS = ("home", "draw", "away")
LEAGUES = ("first", "second", "third")
GAMES = 1500

if __name__ == "__main__":
    rng = np.random.default_rng(21)
    strength = rng.normal(0.25, 0.8, GAMES)
    truth = np.exp(np.stack((strength, np.full(GAMES, -0.1), -strength), 1))
    truth /= truth.sum(axis=1, keepdims=True)
    came = (rng.random((GAMES, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    said = truth**1.4 / (truth**1.4).sum(axis=1, keepdims=True)
    thousandths = np.round(said * 1000).astype(int)
    thousandths[:, 1] = 1000 - thousandths[:, 0] - thousandths[:, 2]
    leagues = rng.choice(LEAGUES, GAMES, p=[0.5, 0.3, 0.2]).tolist()
    with Path(__file__).with_name("games.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["game", "league", "result", *(f"p_{result}" for result in RESULTS)])
        games = zip(leagues, came.tolist(), thousandths.tolist(), strict=True)
        for number, (league, k, row) in enumerate(games, 1):
            said_row = (f"{part / 1000:.3f}" for part in row)
            rows.writerow([number, league, RESULTS[k], *said_row])
