"""The distance to calibration, with the nearest calibrated forecasts as its witness."""

from truecast.distance.search import Distance, calibration_distance
from truecast.distance.witness import Witness, verify_witness
from truecast.splitting import splitting_gap

__all__ = ["Distance", "Witness", "calibration_distance", "splitting_gap", "verify_witness"]
