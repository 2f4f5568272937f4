"""Make rain.csv: ten years of a made-up town's weather: wet winters, dry summers, spells."""

import csv
import math
import random
from datetime import date, timedelta
from pathlib import Path

rng = random.Random(42)
wet = False
with Path(__file__).with_name("rain.csv").open("w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["day", "rain"])
    for number in range(3_653):
        day = date(2015, 1, 1) + timedelta(days=number)
        season = 0.38 + 0.22 * math.cos(2 * math.pi * day.timetuple().tm_yday / 365.25)
        wet = rng.random() < season + (0.25 if wet else -0.12)
        rows.writerow([day.isoformat(), int(wet)])
