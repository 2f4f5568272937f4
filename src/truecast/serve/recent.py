"""Ids that were used lately: most outcomes are of these, and need no look into the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from truecast.serve.store import Known, Store

__all__ = ["Recent"]

Key = tuple[int, str]


class Recent:
    """What is known of ids, in two generations: when the younger is full, the older one goes.

    Only what is durable is put in.

    Parameters
    ----------
    store
        Where all others are.
    most
        How many ids a generation has.
    """

    def __init__(self, store: Store, most: int = 25_000) -> None:
        self.store, self.most = store, most
        self._young: dict[Key, Known] = {}
        self._old: dict[Key, Known] = {}

    def find(self, asked: Iterable[tuple[int, Sequence[str]]]) -> dict[Key, Known]:
        """Return what is known of ids, by the number of their stream."""
        found: dict[Key, Known] = {}
        missing: dict[int, list[str]] = {}
        for stream, ids in asked:
            for name in ids:
                key = stream, name
                known = self._young.get(key) or self._old.get(key)
                if known is not None:
                    found[key] = known
                else:
                    missing.setdefault(stream, []).append(name)
        if missing:
            found.update(self.store.lookup(missing))
        return found

    def keep(self, known: dict[Key, Known]) -> None:
        """Remember what a transaction has written, or looked up."""
        self._young.update(known)
        if len(self._young) > self.most:
            self._young, self._old = {}, self._young

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old = {}, {}
