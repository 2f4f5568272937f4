"""Tokens: who may do what. The file has their hashes only."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from truecast.errors import AccessError, FileError, InputError

__all__ = ["ANYONE", "SCOPES", "Token", "Tokens", "add_token", "bearer"]

SCOPES = ("read", "forecast", "outcome", "admin")
PREFIX = "tc_"  # so that scanners for leaked secrets can find them
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LINE = re.compile(rf"({_NAME.pattern})\s+([a-z,]+)\s+sha256:([0-9a-f]{{64}})")
_LONGEST = 200  # characters of a token


@dataclass(frozen=True, slots=True)
class Token:
    """A token by its hash: 32 random bytes need neither salt nor a slow hash."""

    name: str
    scopes: frozenset[str]
    digest: bytes

    def line(self) -> str:
        """Return its line in the file."""
        scopes = ",".join(scope for scope in SCOPES if scope in self.scopes)
        return f"{self.name} {scopes} sha256:{self.digest.hex()}\n"


#: who asks a service without tokens, which only this machine can reach
ANYONE = Token("anyone", frozenset(SCOPES), b"")


class Tokens:
    """The tokens of a file."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = tuple(tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file: a token a line, `name scope,scope sha256:hex`; # begins a comment."""
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(str(path), f"cannot be read: {error}") from error
        tokens: dict[str, Token] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                token = _parsed(line.strip(), str(path), f"line {number}")
                if token.name in tokens:
                    reason = f"there are two tokens of the name {token.name!r}"
                    raise FileError(str(path), reason, f"line {number}")
                tokens[token.name] = token
        return cls(tokens.values())

    def who(self, secret: bytes) -> Token | None:
        """Return whose token this is; in a time that does not depend on how much of it is right."""
        digest = hashlib.sha256(secret).digest()
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def bearer(header: bytes | None) -> bytes:
    """Return the token in a header, or raise AccessError."""
    if header is None:
        raise AccessError("send a token: the header `Authorization: Bearer ...`", 401)
    kind, _, secret = header.partition(b" ")
    secret = secret.strip()
    if kind.lower() != b"bearer" or not secret or len(secret) > _LONGEST:
        raise AccessError("the header must be `Authorization: Bearer ` and a token", 401)
    return secret


def add_token(path: Path, name: str, scopes: Iterable[str]) -> str:
    """Append a new token to a file, which is made if there is none; return the token itself.

    Nobody can find the token from the file: show it once.
    """
    if not _NAME.fullmatch(name):
        raise InputError("name", "must be letters, digits and . _ -, at most 64", name)
    chosen = frozenset(scopes)
    if not chosen or not chosen <= set(SCOPES):
        rule = "must be at least one of " + ", ".join(SCOPES)
        raise InputError("scopes", rule, ",".join(sorted(chosen)))
    if path.exists() and any(token.name == name for token in Tokens.read(path)._tokens):
        raise InputError("name", f"must be new: {path} has a token of this name", name)
    secret = PREFIX + secrets.token_urlsafe(32)
    token = Token(name, chosen, hashlib.sha256(secret.encode()).digest())
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        # one write, and a line of its own even if the last one lacks its end
        size = file.seek(0, os.SEEK_END)
        whole = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
        file.write(("" if whole else "\n").encode() + token.line().encode())
        os.fsync(descriptor)
    return secret


def _parsed(line: str, file: str, place: str) -> Token:
    line = line.partition("#")[0].strip()
    match = _LINE.fullmatch(line)
    if match is None:
        raise FileError(file, "must be `name scope,scope sha256:hex`", place)
    scopes = frozenset(match[2].split(","))
    if not scopes <= set(SCOPES):
        unknown = ", ".join(sorted(scopes - set(SCOPES)))
        raise FileError(file, f"no such scope: {unknown}; there are {', '.join(SCOPES)}", place)
    return Token(match[1], scopes, bytes.fromhex(match[3]))
