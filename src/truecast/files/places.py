"""Where a file is until it is complete, and how it takes its place: there is never half a file under its own name."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truecast.errors import FileError, writing

__all__ = ["Mark", "complete", "holds", "lock", "mark", "part_of", "piece", "remove", "replaced", "sync"]

Mark = tuple[int, int]
"""How far a file has come, in bytes or in pieces, and a checksum of the end of that."""

WHOLE = "whole"
_OURS = re.compile(rf"[0-9]{{9,}}\.piece|{WHOLE}")  # what a folder has that a file is made in
_TAIL = 1 << 16


def part_of(path: Path) -> Path:
    """Return where a file is until it is complete; a device or a pipe is written to as it is."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return path
    target = path.resolve()  # a link stays a link
    return target.with_name(target.name + ".part")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a place to write to; what was written there replaces the file once it is complete and on the disk."""
    part = part_of(path)
    if part == path:
        yield path
        return
    try:
        yield part
        sync(part)
        part.replace(path.resolve())
    finally:
        part.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """See that a file is on the disk; and the names in a folder, where that can be asked for."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def piece(part: Path, number: int) -> Path:
    """Return the place of a piece in a folder of them."""
    return part / f"{number:09}.piece"


def mark(path: Path, amount: int | None = None) -> Mark:
    """Return a mark of so many bytes of a file, or all of it."""
    amount = path.stat().st_size if amount is None else amount
    with path.open("rb") as file:
        file.seek(max(amount - _TAIL, 0))
        return amount, zlib.crc32(file.read(min(amount, _TAIL)))


def holds(part: Path, marked: Mark) -> bool:
    """Return whether this, a file or a folder of pieces, has come as far as was marked, and by the same run."""
    amount, tail = marked
    if part.is_dir():
        last = piece(part, amount - 1)
        return last.is_file() and mark(last)[1] == tail
    return part.is_file() and part.stat().st_size >= amount and mark(part, amount) == marked


def remove(path: Path) -> None:
    """Remove what there is of a file that was not completed."""
    part = part_of(path)
    if part.is_dir() and not part.is_symlink():
        _remove_folder(part)
    elif part != path:
        part.unlink(missing_ok=True)


def _remove_folder(part: Path) -> None:
    """Remove a folder that a file was made in; one with anything else in it is not ours."""
    found = list(part.iterdir())
    other = next((each for each in found if not _OURS.fullmatch(each.name) or not each.is_file()), None)
    if other is not None:
        raise FileError(str(part), f"is in the way, and has {other.name!r} in it: move it elsewhere")
    for each in found:
        each.unlink()
    part.rmdir()


def complete(path: Path, marked: Mark) -> None:
    """Put a file that is ready, and marked so, in its place; to do so twice, or the rest of it, does no harm."""
    part = part_of(path)
    ready = part / WHOLE if part.is_dir() else part
    if ready.is_file() and mark(ready) == marked:
        ready.replace(path.resolve())
        sync(path.resolve().parent)
    if part.is_dir() and not part.is_symlink():
        _remove_folder(part)


@contextmanager
def lock(path: Path | None, option: str) -> Iterator[None]:
    """Keep other runs from this file meanwhile; the system forgets it if the process dies."""
    if path is None or os.name != "posix" or part_of(path) == path:
        yield
        return
    import fcntl

    place = path.resolve().with_name(path.resolve().name + ".lock")
    with writing(path, option):
        file = place.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = place.exists() and os.path.samestat(os.fstat(file.fileno()), place.stat())
        except BlockingIOError:
            there = False
        if not there:  # or the other has just ended, and taken the lock away
            raise FileError(str(path), "is being written by another run: wait until that has ended")
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
