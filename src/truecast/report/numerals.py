"""Numbers as people read them."""

from __future__ import annotations

import math

__all__ = [
    "NONE",
    "count",
    "figure",
    "p_value",
    "percent",
    "place",
    "points",
    "probability",
    "roughly",
    "rounds",
    "signed",
]

NONE = "\N{EN DASH}"  # where there is no number
MINUS = "\N{MINUS SIGN}"


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
    return f"{count(number)} round{'s'[: number != 1]}" if isinstance(number, int) else f"weight {count(number)}"


def figure(value: float) -> str:
    """Return a score or an error: four decimals, or two digits of what is smaller.

    Examples
    --------
    >>> figure(0.04583), figure(0.0000123), figure(float("inf"))
    ('0.0458', '0.000012', 'infinite')
    """
    if not math.isfinite(value):
        return "infinite" if math.isinf(value) else NONE
    return f"{value:.{max(4, _decimals(value, 2))}f}" if value else "0"


def signed(value: float) -> str:
    """Return a figure with its sign."""
    return ("+" if value > 0 else MINUS if value < 0 else "") + figure(abs(value))


def roughly(value: float) -> str:
    """Return a number with two digits.

    Examples
    --------
    >>> roughly(0.1134), roughly(0.0886), roughly(0.9999), roughly(0)
    ('0.11', '0.089', '1', '0')
    """
    return _plain(f"{abs(value):.{max(0, _decimals(value, 2))}f}") if value else "0"


def probability(value: float) -> str:
    """Return a forecast: as many digits as it takes to tell it from 0 and 1, none for show.

    Examples
    --------
    >>> probability(0.25), probability(0.123456), probability(0.99987), probability(0.00012345)
    ('0.25', '0.123', '0.99987', '0.000123')
    """
    smaller = min(value, 1 - value)
    return _plain(f"{value:.{_decimals(smaller, 3) if smaller > 0 else 0}f}")


def place(value: float, span: float) -> str:
    """Return a forecast among others that are spread over `span`: to a thousandth of that.

    Examples
    --------
    >>> place(0.00000531, 1.0), place(0.00531, 0.01), place(0.3, 0)
    ('0.000', '0.00531', '0.3')
    """
    return f"{value:.{3 + max(0, round(-math.log10(span)))}f}" if span else probability(value)


def percent(share: float) -> str:
    r"""Return a share in percent: two digits, and all before the point.

    Examples
    --------
    >>> percent(0.3436), percent(0.017), percent(0.00042), percent(0)
    ('34\xa0%', '1.7\xa0%', '0.042\xa0%', '0\xa0%')
    """
    return f"{points(share)}\xa0%"


def points(share: float) -> str:
    """Return a share in percentage points, without the words: two digits, and all before the point."""
    return f"{100 * share:.{max(0, _decimals(100 * share, 2))}f}".replace("-", MINUS) if share else "0"


def p_value(value: float) -> str:
    """Return a p-value; below 0.0001 nobody should care for its digits.

    Examples
    --------
    >>> p_value(0.0312), p_value(1e-20), p_value(1.0)
    ('0.031', '< 0.0001', '1')
    """
    return NONE if math.isnan(value) else f"{value:.2g}" if value >= 1e-4 else "< 0.0001"


def _decimals(value: float, digits: int) -> int:
    """Return after how many decimals so many digits of the number have been written."""
    return min(12, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
