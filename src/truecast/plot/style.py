"""How pictures look: on light and dark grounds, and to the colour-blind."""

from __future__ import annotations

from typing import Any

__all__ = ["COLORS", "DASHES", "GREY", "MARKERS", "ink", "new_figure"]

# Okabe and Ito's, without black, which is lost on dark grounds, and yellow, which is on light ones
COLORS = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "x", "+", "<", ">", "p", "*")  # 11, so that 66 pairs are all different
DASHES = ("-", "--", "-.")
GREY = "#999999"


def new_figure(width: float, height: float) -> Any:
    """Return a figure of so many inches, in the user's style, that no window knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'truecast[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def ink(axes: Any) -> Any:
    """Return the colour that these axes are labelled in, which can be seen on their ground."""
    return axes.xaxis.label.get_color()
