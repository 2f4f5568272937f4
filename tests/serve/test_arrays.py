"""Arrays that are sent to PostgreSQL arrive as they are."""

import psycopg
import pytest

from truecast.serve.arrays import Blobs, Numbers, Texts, register


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", Numbers([0, -1, 2**63 - 1, -(2**63)])),
        ("bytea", Blobs([b"", b"\0\xff", b"x" * 3_000])),
        ("text", Texts(["", "a", "é\n\U0001f600'\";--{},NULL"])),
        ("bigint", Numbers()),
        ("bytea", Blobs()),
        ("text", Texts()),
    ],
)
def test_arrays_arrive_as_they_are(server, kind, values):
    with psycopg.connect(server.url("postgres")) as db:
        register(db)
        found = db.execute(f"SELECT %b::{kind}[]", (values,), binary=True).fetchone()[0]
        plain = db.execute(f"SELECT %b::{kind}[] = %s", (values, list(values))).fetchone()[0]
    assert (found, plain) == (list(values), True)
