"""Where a file is until it is complete, and how it takes its place.

There is never half a file under its own name.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from truecast._atomic import beside, hold, in_the_way, is_device, open_no_link, sync
from truecast.errors import FileError, shown, writing

__all__ = [
    "Mark",
    "lock",
    "mark",
    "part_path",
    "piece",
    "put_in_place",
    "reaches",
    "refuse_no_file",
    "remove_part",
]

Mark = tuple[int, int]
"""How far a file has come, in bytes or in pieces, and a checksum of the end of that."""

JOINED = "whole"
_PIECE = re.compile(rf"[0-9]{{9,}}\.piece|{JOINED}")  # what a folder has that a file is made in
_TAIL = 1 << 16


def part_path(path: Path) -> Path:
    """Return where a file is until it is complete; a device or a pipe is written to as it is."""
    return path if is_device(path) else beside(path, ".part")


def refuse_no_file(path: Path, option: str, *endings: str) -> None:
    """Refuse what is there and is no file, and links beside it: their targets are not ours.

    Raises
    ------
    FileError
        If the file is a pipe, a device or a folder; or what is at its name with one of these
        `endings` is, or is a link. The folder that a file is made in, with pieces and nothing else,
        may be there.
    """
    for ending in ("", *endings):
        place = beside(path, ending)
        with writing(path, option), suppress(FileNotFoundError):
            kind = place.lstat().st_mode
            if stat.S_ISLNK(kind):
                raise FileError(
                    str(place), f"is a link, which is not followed here ({option}): remove it"
                )
            if stat.S_ISDIR(kind) and ending == ".part":
                _pieces_in(place)
            elif not stat.S_ISREG(kind):
                reason = f"exists and is not a file that can be replaced: choose another ({option})"
                raise FileError(str(place) if ending else shown(str(path)), reason)


def piece(part: Path, number: int) -> Path:
    """Return the place of a piece in a folder of them."""
    return part / f"{number:09}.piece"


def mark(path: Path, amount: int | None = None) -> Mark:
    """Return a mark of the first `amount` bytes of a file, or of all."""
    amount = path.stat().st_size if amount is None else amount
    with path.open("rb") as file:
        file.seek(max(amount - _TAIL, 0))
        return amount, zlib.crc32(file.read(min(amount, _TAIL)))


def reaches(part: Path, marked: Mark) -> bool:
    """Return whether a file, or a folder of pieces, has come as far as the same run marked."""
    amount, tail = marked
    if not amount or part.is_symlink():  # a run has always written something before it is marked
        return False
    if part.is_dir():
        last = piece(part, amount - 1)
        return last.is_file() and mark(last)[1] == tail
    return part.is_file() and part.stat().st_size >= amount and mark(part, amount) == marked


def remove_part(path: Path) -> None:
    """Remove what there is of a file that was not completed."""
    part = part_path(path)
    if part.is_dir() and not part.is_symlink():
        _remove_folder(part)
    elif part != path:
        part.unlink(missing_ok=True)


def _remove_folder(part: Path) -> None:
    """Remove a folder that a file was made in; one with anything else in it is not ours."""
    for each in _pieces_in(part):
        each.unlink()
    part.rmdir()


def _pieces_in(part: Path) -> list[Path]:
    """Return the pieces in a folder; refuse it if there is anything else in it."""
    found = list(part.iterdir())
    for each in found:
        if not _PIECE.fullmatch(each.name) or not stat.S_ISREG(each.lstat().st_mode):
            raise FileError(str(part), f"is in the way, and contains {each.name!r}: move it away")
    return found


def put_in_place(path: Path, marked: Mark) -> None:
    """Put a file that is ready, and marked so, in its place; doing that twice does no harm."""
    part = part_path(path)
    ready = part / JOINED if part.is_dir() else part
    if ready.is_file() and mark(ready) == marked:
        ready.replace(path.resolve())
        sync(path.resolve().parent)
    if part.is_dir() and not part.is_symlink():
        _remove_folder(part)


@contextmanager
def lock(path: Path | None, option: str) -> Iterator[None]:
    """Keep other runs from this file meanwhile; the system forgets it if the process dies.

    A lock is an empty file: one that is not is somebody's, and is refused; as is all that
    `refuse_no_file` refuses.
    """
    if path is not None:
        refuse_no_file(path, option, ".part", ".lock")
    if path is None or os.name != "posix":
        yield
        return
    place = beside(path, ".lock")
    with writing(path, option):
        file = open_no_link(place, "ab")
    with file:
        if os.fstat(file.fileno()).st_size:
            raise in_the_way(place, option)
        try:
            hold(file)
            # the run that held the lock removes the file: ours may be gone already
            there = place.exists() and os.path.samestat(os.fstat(file.fileno()), place.stat())
        except BlockingIOError:
            there = False
        if not there:
            raise FileError(str(path), "is being written by another run: wait until that has ended")
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
