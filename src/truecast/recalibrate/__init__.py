"""Recalibration: hints from a model's scores, and a guard over them."""
