"""Truecast on Spark."""
