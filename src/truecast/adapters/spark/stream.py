"""Structured streams through a recalibrator a key, each event once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from truecast import _check
from truecast.adapters.spark import stream_rows
from truecast.adapters.spark._state import Counts, KeyState, Windows
from truecast.adapters.spark.stream_processor import KEYS, STREAM, Processor
from truecast.errors import InputError
from truecast.recalibrate import Recalibrator

__all__ = ["recalibrate_stream", "stream_states"]
