"""Numbers for people: only 0 looks like 0, and what differs looks different."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from truecast._names import counted

__all__ = [
    "MINUS",
    "NONE",
    "apart",
    "between",
    "count",
    "figure",
    "p_value",
    "percent",
    "points",
    "probability",
    "roughly",
    "rounds",
    "signed",
]

NONE = "\N{EN DASH}"  # where there is no number
MINUS = "\N{MINUS SIGN}"
_SMALL, _LARGE = 1e-6, 1e12  # outside of which a number is written with a power of ten
_NOISE = 1e-15  # below which its digits are those of rounding
_TIMES = "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: float) -> str:
    """Return a number of rounds, or a weight.

    Examples
    --------
    >>> count(1234567), count(2.5)
    ('1,234,567', '2.5')
    """
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


def rounds(number: float) -> str:
    """Return a number of rounds with its noun, or a weight.

    Examples
    --------
    >>> rounds(1), rounds(1000), rounds(2.5)
    ('1 round', '1,000 rounds', 'weight 2.5')
    """
    return counted(number, "round") if isinstance(number, int) else f"weight {count(number)}"


def figure(value: float) -> str:
    """Return a score or an error: four decimals, or two digits of what is smaller.

    Examples
    --------
    >>> figure(0.04583), figure(0.0000123), figure(float("inf")), figure(1e-20)
    ('0.0458', '0.000012', 'infinite', '< 10⁻¹⁵')
    """
    if not math.isfinite(value):
        return "infinite" if math.isinf(value) else NONE
    if _needs_power(value):
        return _power(value)
    return _fixed(value, max(4, _decimals(value, 2))) if value else "0"


def apart(one: float, other: float) -> tuple[str, str]:
    """Return two figures that are compared, with two digits of their difference.

    Examples
    --------
    >>> apart(0.001703, 0.0017), apart(0.19, 0.16), apart(0.25, 0.25)
    (('0.0017030', '0.0017000'), ('0.1900', '0.1600'), ('0.2500', '0.2500'))
    """
    difference, sizes = abs(one - other), (abs(one), abs(other))
    if not _NOISE < difference < math.inf or min(sizes) < _SMALL or max(sizes) >= _LARGE:
        return figure(one), figure(other)
    places = max(4, *(_decimals(value, 2) for value in (one, other, difference)))
    return _fixed(one, places), _fixed(other, places)


def signed(value: float) -> str:
    """Return a figure with its sign."""
    return ("+" if value > 0 else MINUS if value < 0 else "") + figure(abs(value))


def roughly(value: float) -> str:
    """Return a number with two digits, without its sign.

    Examples
    --------
    >>> roughly(0.1134), roughly(0.0886), roughly(0.9999), roughly(0)
    ('0.11', '0.089', '1', '0')
    """
    if _needs_power(value):
        return _power(abs(value))
    return _plain(_fixed(abs(value), max(0, _decimals(value, 2)))) if value else "0"


def probability(value: float, digits: int = 3) -> str:
    """Return a forecast: as many digits as it takes to tell it from 0 and 1, none for show.

    Examples
    --------
    >>> probability(0.25), probability(0.123456), probability(0.99987), probability(0.00012345)
    ('0.25', '0.123', '0.99987', '0.000123')
    >>> probability(0.7294, 2), probability(0.9684, 2)
    ('0.73', '0.968')
    """
    smaller = min(value, 1 - value)
    if 0 < value < _SMALL:
        return _power(value)
    return _plain(_fixed(value, _decimals(smaller, digits) if smaller > 0 else 0))


def between(low: float, high: float, span: float = 1.0) -> tuple[str, ...]:
    """Return the ends of a range among others over `span`, as different as they are; or one value.

    Examples
    --------
    >>> between(0.1, 0.25), between(0.0, 0.0001), between(0.3, 0.3), between(5.31e-6, 1.0)
    (('0.100', '0.250'), ('0.000', '0.0001'), ('0.3',), ('0.00000531', '1.000'))
    """
    if low == high:
        return (probability(low),)
    places = 3 + max(0, round(-math.log10(span or 1.0)))
    for more in range(places, 18):
        ends = tuple(_place(end, more) for end in (low, high))
        if ends[0] != ends[1]:
            return ends
    if probability(low) != probability(high):
        return probability(low), probability(high)
    return _exact(low), _exact(high)


def percent(share: float) -> str:
    r"""Return a share in percent: two digits, and all before the point.

    Examples
    --------
    >>> percent(0.3436), percent(0.017), percent(0.00042), percent(0)
    ('34\xa0%', '1.7\xa0%', '0.042\xa0%', '0\xa0%')
    """
    return f"{points(share)}\xa0%"


def points(share: float) -> str:
    """Return a share in percentage points: two digits, and all before the point. No words."""
    value = 100 * share
    if _needs_power(value):
        return _power(value)
    return _fixed(value, max(0, _decimals(value, 2))).replace("-", MINUS) if share else "0"


def p_value(value: float) -> str:
    """Return a p-value; below 0.0001 nobody should care for its digits.

    Examples
    --------
    >>> p_value(0.0312), p_value(0.295), p_value(1e-20), p_value(1.0)
    ('0.031', '0.3', '< 0.0001', '1')
    """
    return NONE if math.isnan(value) else roughly(value) if value >= 1e-4 else "< 0.0001"


def _place(value: float, places: int) -> str:
    """Return a number with these decimals; with more if it would look like 0 or 1 and is not."""
    text = _fixed(value, places)
    return probability(value) if float(text) in (0.0, 1.0) and float(text) != value else text


def _fixed(value: float, places: int) -> str:
    """Return a number with these decimals, half rounded up: the same everywhere, and in percent."""
    rounded = Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:f}"


def _needs_power(value: float) -> bool:
    return value != 0 and not _SMALL <= abs(value) < _LARGE


def _power(value: float) -> str:
    if abs(value) < _NOISE:
        return "< 10⁻¹⁵"
    digits, power = f"{value:.1e}".split("e")
    return (
        f"{_plain(digits).replace('-', MINUS)}{_TIMES}10{str(int(power)).translate(_SUPERSCRIPT)}"
    )


def _exact(value: float) -> str:
    """Return all digits of a number."""
    digits, _, power = repr(value).partition("e")
    return f"{digits}{_TIMES}10{str(int(power)).translate(_SUPERSCRIPT)}" if power else digits


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals it takes to write that many digits of the number."""
    return min(17, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
