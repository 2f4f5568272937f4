"""A PostgreSQL of the tests' own, and a database of each kind."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from postgres import Postgres, programs


@pytest.fixture(scope="session")
def server():
    found = programs()
    if found is None:
        pytest.skip("needs PostgreSQL (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="truecast-pg-"))
    postgres = Postgres(folder, found)
    postgres.start()
    yield postgres
    postgres.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(server, request):
    """A database of its own."""
    import psycopg

    name = f"t{abs(hash(request.node.nodeid)):x}_{time.time_ns():x}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.url(name)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a.db"
    return request.getfixturevalue("postgres_url")
