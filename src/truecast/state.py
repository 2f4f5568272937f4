"""Saved forecasters: plain data to versioned JSON or bytes and back.

Reading runs no code: this is not pickle.

The JSON text is one object::

    {"format": "truecast", "version": 2, "kind": "AlmostOneStepAhead",
     "config": {...}, "state": {...}, "crc32": ...}

where `crc32` is that of the other entries in canonical form. The writer may add an entry "run" for
its own use; forecasters ignore it. The bytes are ``b"TRUECAST"``, the version in one byte, and that
text compressed by zlib: at most 16 times, or to no more than 16 MB. Anything that unpacks to more
is refused, so a small forgery cannot fill the memory: reading takes at most about 25 bytes for each
letter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Self

from truecast.errors import InputError, StateError, VersionError

VERSION = 2
_FORMAT = "truecast"
_MAGIC = b"TRUECAST"
_NOT_SAVED = "this is not a saved forecaster: "
_A_NAME = "pass the text of the file, not its name"
_HEAD = _MAGIC + bytes([VERSION])
_LONGEST = 1 << 30  # letters of any text that is read
_SMALL = 1 << 24  # letters that are read from however few bytes
_RATIO = 16  # letters a byte, beyond that
_ENTRIES = {"format", "version", "kind", "config", "state", "crc32"}


def to_json(
    kind: str, config: dict[str, Any], state: dict[str, Any], run: dict[str, Any] | None = None
) -> str:
    """Return what `from_json` reads."""
    import json

    saved = {"format": _FORMAT, "version": VERSION, "kind": kind, "config": config, "state": state}
    if run is not None:
        saved["run"] = run
    return json.dumps(saved | {"crc32": _crc32(saved)})


def from_json(text: str, *kinds: str, oldest: int = 1) -> tuple[dict[str, Any], object]:
    """Return the configuration and state in `text`, if one of `kinds` saved it since `oldest`."""
    import json

    try:
        saved = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        named = isinstance(text, str) and "{" not in text
        what = _A_NAME if named else f"it is cut off, or not JSON ({error})"
        raise StateError(f"{_NOT_SAVED}{what}") from error
    if not isinstance(saved, dict) or saved.get("format") != _FORMAT:
        raise StateError(_NOT_SAVED + 'it has no "format": "truecast"')
    _check_version(saved.get("version"))
    if set(saved) - {"run"} != _ENTRIES:
        raise StateError(
            f"a saved forecaster has the entries {sorted(_ENTRIES)}, got {sorted(saved)}"
        )
    try:
        checksum = _crc32({name: saved[name] for name in saved if name != "crc32"})
    except RecursionError as error:
        raise StateError(f"{_NOT_SAVED}it is nested too deeply") from error
    if saved["crc32"] != checksum:
        raise StateError("the saved forecaster is corrupted: its checksum does not match")
    if saved["kind"] not in kinds:
        raise StateError(f"this was saved by {saved['kind']!s:.80}, not by {kinds[0]}")
    if saved["version"] < oldest:
        raise VersionError(
            f"this {saved['kind']} was saved in version {saved['version']} of the format, "
            "and had a different guard: "
            "start a new one and replay your log, or continue with truecast 0.1"
        )
    if not isinstance(saved["config"], dict):
        raise StateError(f"the saved config must be an object, got {saved['config']!r:.80}")
    return saved["config"], saved["state"]


def reason(error: StateError) -> str:
    """Return why a file is not a saved forecaster, for a message that says so itself."""
    found = str(error).removeprefix(_NOT_SAVED)
    return "it is not JSON" if found == _A_NAME else found


def to_bytes(text: str) -> bytes:
    """Return the compact form of what `to_json` gave."""
    import zlib

    if len(text) > _LONGEST:
        raise StateError(
            f"a saved forecaster in compact form has at most {_LONGEST} letters: save it as JSON"
        )
    letters = text.encode()
    packed = zlib.compress(letters, 9)
    if len(letters) > _most_letters(packed):
        packed = _loosely_packed(letters)
    return _HEAD + packed


def _most_letters(packed: bytes) -> int:
    """How much the compressed text may unpack to."""
    return min(_LONGEST, max(_SMALL, _RATIO * len(packed)))


def _loosely_packed(letters: bytes) -> bytes:
    """Compress by the letters' frequencies alone: a letter takes a bit, so 8 times at most."""
    import zlib

    packer = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
    return packer.compress(letters) + packer.flush()


def from_bytes(data: bytes) -> str:
    """Return the JSON text in what `to_bytes` gave."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError(f"a saved forecaster in compact form is bytes, got {type(data).__name__}")
    data = bytes(data)
    if not data.startswith(_MAGIC):
        raise StateError(f"{_NOT_SAVED}it does not begin with TRUECAST")
    _check_version(data[len(_MAGIC)] if len(data) > len(_MAGIC) else None)
    return _unpacked(data[len(_HEAD) :])


def _unpacked(packed: bytes) -> str:
    import zlib

    reader, most = zlib.decompressobj(), _most_letters(packed)
    try:
        letters = reader.decompress(packed, most + 1)
    except zlib.error as error:
        raise StateError(f"the saved forecaster is corrupted: {error}") from error
    if len(letters) > most:
        raise StateError(
            f"these {len(packed):,} bytes unpack to more than {most:,} letters, "
            "which no saved forecaster does: "
            "if you trust the source, unpack them with zlib and read them with from_json"
        )
    if not reader.eof or reader.unused_data:
        raise StateError("the saved forecaster is corrupted: it ends too early or too late")
    try:
        return letters.decode()
    except UnicodeDecodeError as error:
        raise StateError(f"the saved forecaster is corrupted: {error}") from error


def _check_version(version: object) -> None:
    if type(version) is not int or version < 1:
        raise StateError(f"the saved forecaster has no valid version: {version!r:.80}")
    if version > VERSION:
        raise VersionError(
            f"the forecaster was saved in version {version} of the format, "
            f"this truecast reads up to {VERSION}: "
            "upgrade truecast to read it"
        )


def _crc32(saved: dict[str, Any]) -> int:
    import json
    import zlib

    return zlib.crc32(json.dumps(saved, sort_keys=True, separators=(",", ":")).encode())


class Entry(NamedTuple):
    """A number of a saved state, or a row of numbers, as the core lists it."""

    name: str
    kind: str  #: NumPy's, such as "<i8"; or "int" for integers of any size
    length: int | None  #: None for a single number, -1 for a row of any length
    least: float  #: of each number
    most: float
    meaning: str


def kinds_of(entries: Iterable[Entry]) -> dict[str, str]:
    """The kind of each, by name, as `truecast.columns` takes them."""
    return {entry.name: entry.kind for entry in entries}


def require_entries(what: str, saved: object, names: Iterable[str]) -> dict[str, Any]:
    """Return what was saved if it has just these entries."""
    names = list(names)
    if not isinstance(saved, dict) or set(saved) != set(names):
        raise StateError(f"the saved {what} must have exactly the entries {', '.join(names)}")
    return saved


def plain(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what the core saved, with lists instead of arrays."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in numbers.items()
    }


def typed(saved: object, entries: Iterable[Entry]) -> dict[str, Any]:
    """Return a saved state if it has just these entries, of their types."""
    entries = list(entries)
    found = require_entries("state", saved, kinds_of(entries))
    for name, kind, length, *_ in entries:
        number: type = {"bool": bool, "<f8": float}.get(kind, int)
        expected = number if length is None else list
        if type(found[name]) is not expected:
            raise StateError(
                f"the saved {name} must be of type {expected.__name__}, got {found[name]!r:.80}"
            )
        numbers = found[name] if expected is list else []
        if any(type(each) is not number for each in numbers) or (
            length not in (None, -1, len(numbers))
        ):
            many = "a list of int" if length == -1 else f"{length} integers"
            raise StateError(f"the saved {name} must be {many}")
    return found


def require_ranges(
    state: dict[str, Any], entries: Iterable[Entry], tighter: dict[str, tuple[float, float]]
) -> None:
    """Refuse a single number outside of its range: that of its entry, or a tighter one."""
    for name, kind, length, least, most, _ in entries:
        if length is not None or kind == "bool":
            continue
        least, most = tighter.get(name, (least, most))
        if not least <= state[name] <= most:
            raise StateError(
                f"the saved {name} must be from {least} to {most}, got {state[name]!r:.80}"
            )


class Saveable:
    """What can be saved: a configuration, which rebuilds it, and a state of plain data."""

    #: the oldest version of the format that it reads
    _oldest = 1
    #: other classes whose states it loads, since it builds them
    _builds: ClassVar[tuple[str, ...]] = ()
    #: the attributes that keep its keyword arguments, each named after its argument
    _options: ClassVar[tuple[str, ...]] = ()

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this."""
        return {name.removeprefix("_"): getattr(self, name) for name in self._options}

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""

    @abstractmethod
    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""

    def to_json(self) -> str:
        """Save everything as JSON text; `from_json` continues from exactly here."""
        return to_json(type(self).__name__, self.config, self.state())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build what `to_json` saved.

        Raises
        ------
        StateError
            If the text is corrupted or was not saved by this class; VersionError if a newer
            truecast wrote it.
        """
        return cls._rebuild(*cls._read(text))

    @classmethod
    def _read(cls, text: str) -> tuple[dict[str, Any], object]:
        return from_json(text, cls.__name__, *cls._builds, oldest=cls._oldest)

    @classmethod
    def _rebuild(cls, config: dict[str, Any], saved: object) -> Self:
        try:
            built = cls(**config)
        except (TypeError, InputError, RecursionError) as error:
            raise StateError(
                f"{cls.__name__} cannot be built from the saved configuration: {error}"
            ) from error
        built.load(saved)
        return built

    def to_bytes(self) -> bytes:
        """Save everything as compact bytes; `from_bytes` continues from exactly here."""
        return to_bytes(self.to_json())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Build what `to_bytes` saved; raises as `from_json` does."""
        return cls.from_json(from_bytes(data))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy through `to_bytes`, so that copies and worker processes continue from here too."""
        return load, (type(self), self.to_bytes())

    def __repr__(self) -> str:
        options = ", ".join(
            f"{name}={value!r}" for name, value in self.config.items() if value is not None
        )
        return f"{type(self).__name__}({options})"


def load(cls: type[Saveable], data: bytes) -> Saveable:
    """Build what an object of this class saved; picklers other than Python's need a function."""
    return cls.from_bytes(data)
