"""The signature of a webhook: made by the service, checked by those who hear of an alarm."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from typing import Any

from truecast.errors import AccessError, InputError

__all__ = ["SIGNATURE", "signature", "verify_webhook"]

SIGNATURE = "Truecast-Signature"  # the header
_FORM = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


def signature(body: bytes, secret: bytes, at: int) -> str:
    """Return the header: a time, and the HMAC-SHA256 of that time, a dot and the body.

    Examples
    --------
    >>> signature(b"{}", b"secret", at=1_700_000_000)[:20]
    't=1700000000,v1=b856'
    """
    mac = hmac.new(secret, b"%d." % at + body, hashlib.sha256)
    return f"t={at},v1={mac.hexdigest()}"


def verify_webhook(
    body: bytes, header: str, secret: bytes | str, *, tolerance: float = 300.0
) -> dict[str, Any]:
    """Return what a webhook says, if the service that has the secret has sent it just now.

    Parameters
    ----------
    body
        The body as it came, not parsed and written again.
    header
        What the header ``Truecast-Signature`` says.
    secret
        What the file of `truecast serve --webhook-secret` has.
    tolerance
        Seconds that it may be old, so that nobody can send a recorded one again. An alarm may be
        delivered twice: its `id` tells.

    Raises
    ------
    AccessError
        If the signature is not right, or too old.

    Examples
    --------
    >>> body = b'{"stream": "judge"}'
    >>> verify_webhook(body, signature(body, b"secret", at=int(time.time())), "secret")
    {'stream': 'judge'}
    """
    if not isinstance(body, bytes):
        raise InputError("body", "must be the bytes of the body", type(body).__name__)
    match = _FORM.fullmatch(header) if isinstance(header, str) else None
    if match is None:
        raise AccessError(f"the header {SIGNATURE} is not a signature")
    key = secret.strip().encode() if isinstance(secret, str) else secret.strip()
    at = int(match[1])
    if not hmac.compare_digest(signature(body, key, at), header):
        raise AccessError("the signature is not that of this body and secret")
    if abs(time.time() - at) > tolerance:
        raise AccessError(f"the signature is more than {tolerance:g} s old")
    found: dict[str, Any] = json.loads(body)
    return found
