"""A PostgreSQL of one's own, on a socket in a temporary directory."""

import os
import shutil
import subprocess
import time
from pathlib import Path


def programs():
    """Where PostgreSQL's server is, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    on_path = shutil.which("postgres")
    return found[-1] if found else Path(on_path).parent if on_path else None


class Postgres:
    """A server that can be stopped, started and killed."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self.data = folder / "data"
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "truecast", "--no-sync")
        self.process = None

    def run(self, program, *arguments):
        subprocess.run(
            [self.programs / program, *arguments],
            user=self.user,
            check=True,
            capture_output=True,
            cwd=self.folder,
        )

    def start(self):
        self.process = subprocess.Popen(
            [
                self.programs / "postgres",
                "-D",
                self.data,
                "-k",
                self.folder,
                "-c",
                "listen_addresses=",
                "-c",
                "max_connections=20",
                "-c",
                "shared_buffers=16MB",
                "-c",
                "recovery_init_sync_method=syncfs",
            ],
            user=self.user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(1_200):
            try:
                self.run("pg_isready", "-h", self.folder, "-U", "truecast", "-d", "postgres")
            except subprocess.CalledProcessError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError("PostgreSQL does not start")

    def stop(self):
        """As if the machine went down: sessions end at once, and the log is replayed at start."""
        self.process.send_signal(3)
        self.process.wait()

    def url(self, database):
        return f"postgresql:///{database}?host={self.folder}&user=truecast"
