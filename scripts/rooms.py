"""Draw the rooms of the package, from the import contract, into CONTRIBUTING.md.

python scripts/rooms.py
"""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
WIDTH = 60
_DRAWING = re.compile(r"(?<=```text\n)┌.*?┘\n(?=```)", re.DOTALL)
# what meets at a place in a line between floors: a wall above, a wall below
_JOINTS = {(False, False): "─", (True, False): "┴", (False, True): "┬", (True, True): "┼"}


def floors() -> list[list[str]]:
    """Return the rooms of each floor, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [layer.split(" | ") for layer in layers]


def drawing() -> str:
    """Return the house: a room imports from floors below its own only."""
    house = floors()
    walls = [_walls(len(floor)) for floor in house]
    lines = ["┌" + _between(set(), walls[0]) + "┐"]
    for floor, own, below in zip(house, walls, [*walls[1:], set()], strict=True):
        lines.append(_floor(floor, own))
        ends = "├┤" if floor is not house[-1] else "└┘"
        lines.append(ends[0] + _between(own, below) + ends[1])
    return "\n".join(lines) + "\n"


def drawn(page: str) -> str:
    """Return a page with the drawing as it should be."""
    return _DRAWING.sub(lambda _: drawing(), page)


def _walls(rooms: int) -> set[int]:
    """Where the inner walls of a floor stand."""
    return {WIDTH * room // rooms for room in range(1, rooms)}


def _between(above: set[int], below: set[int]) -> str:
    return "".join(_JOINTS[place in above, place in below] for place in range(1, WIDTH))


def _floor(rooms: list[str], walls: set[int]) -> str:
    sides = pairwise([0, *sorted(walls), WIDTH])
    widths = (right - left - 1 for left, right in sides)
    named = (room.center(width) for room, width in zip(rooms, widths, strict=True))
    return f"│{'│'.join(named)}│"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
