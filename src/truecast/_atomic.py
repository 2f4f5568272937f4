"""Write a file as a whole: beside its place first, then renamed. There is never half a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from truecast.errors import FileError

__all__ = [
    "beside",
    "hold",
    "in_the_way",
    "is_device",
    "make_folder",
    "open_no_link",
    "refuse_foreign",
    "replaced",
    "sync",
]


_NEW_PLACE = ".truecast-part"  # how places end that are new for each writer


@contextmanager
def replaced(path: Path, begin: bytes = b"") -> Iterator[Path]:
    """Give a place to write to; what is written there replaces the file once it is on the disk.

    If anything fails, the file stays as it was, and the place is removed. A link stays a link: what
    it leads to is replaced. A device or a pipe is written to as it is.

    Parameters
    ----------
    path
        The file to replace, or to make.
    begin
        How all files of this kind begin. If given, the place is always the same, so that what a
        killed run has left there is removed by the next; anything else there is refused. If not,
        the place is new, and locked: places that nobody holds any more were left by killed runs,
        and are removed (not on Windows).

    Raises
    ------
    FileError
        If a file that does not `begin` so, or a link, is in the way.
    """
    if is_device(path):
        yield path
        return
    part = beside(path, ".part" if begin else f".{os.urandom(4).hex()}{_NEW_PLACE}")
    if begin:
        refuse_foreign(part, begin)
        part.unlink(missing_ok=True)
    else:
        _remove_abandoned(path)
    with open_no_link(part, "xb") as file:
        if os.name != "posix":
            file.close()  # Windows renames no open file
        elif not begin:
            hold(file)
        try:
            yield part
            sync(part)
            part.replace(path.resolve())
        finally:
            part.unlink(missing_ok=True)


def hold(file: IO[bytes]) -> None:
    """Lock a file, or raise BlockingIOError; the system forgets the lock if the process dies."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(path: Path) -> None:
    """Remove new places beside this file whose writers were killed: nobody holds them any more."""
    if os.name != "posix":
        return
    pattern = glob.escape(str(path.resolve())) + f".*{_NEW_PLACE}"
    for place in glob.glob(pattern):
        with suppress(OSError), open_no_link(Path(place), "rb") as file:
            hold(file)
            os.unlink(place)


def is_device(path: Path) -> bool:
    """Return whether this is a device or a pipe, which cannot be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def beside(path: Path, ending: str) -> Path:
    """Return the place beside a file, or beside what it links to, with this ending."""
    target = path.resolve()
    return target.with_name(target.name + ending)


def open_no_link(place: Path, mode: str) -> IO[bytes]:
    """Open a file to be written, never through a link."""
    return open(place, mode, opener=_no_link)


def _no_link(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def refuse_foreign(place: Path, begin: bytes, option: str = "") -> None:
    """Refuse to write where there is a link, or a file that does not `begin` as ours do."""
    if place.is_symlink() or (place.exists() and not _begins(place, begin)):
        raise in_the_way(place, option)


def _begins(place: Path, begin: bytes) -> bool:
    """Return whether this is a file that begins so, or an empty one."""
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(len(begin)) in (begin, b"")


def in_the_way(place: Path, option: str = "") -> FileError:
    """Return the error for a file that we have not made, where we would make one."""
    reason = "already exists and was not made by a run like this: remove it, or choose another name"
    return FileError(str(place), f"{reason} ({option})" if option else reason)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, on the disk; one that is there stays as it is."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode, parents=True, exist_ok=True)
    for folder in made:
        sync(folder.parent)


def sync(path: Path) -> None:
    """See that a file is on the disk; of a folder, its names, where the system can do that."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
