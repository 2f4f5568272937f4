"""The pages that compute in the browser: what they need, made from docs/browser/.

The core's headers are compiled to WebAssembly by clang, with the standard library for WASI. Where
there is none, the pages are left out: `made` returns nothing, and says why.

python scripts/docs_browser.py  # says whether the pages can be made, and how large they are
"""

from __future__ import annotations

import base64
import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "docs" / "browser"
PAGES = ("play.md", "drop.md")
FOLDER = "in-browser"  # of the site: sources lie elsewhere, and are not copied
PACKAGES = "clang lld wasi-libc libc++-dev-wasm32 libclang-rt-dev-wasm32"  # Debian's names
_COMPILERS = ("clang++", *(f"clang++-{version}" for version in range(30, 13, -1)))
_OPTIONS = (
    "--target=wasm32-wasi -std=c++17 -Os -ffp-contract=off -fexceptions -fno-rtti -Wall -Wextra "
    "-mexec-model=reactor -Wl,--strip-all"
)
# Scripts of a page, in order; that of a worker, which the page starts from text.
_SCRIPTS = {
    "play.js": ("unpack.js", "core.js", "draw.js", "play.js"),
    "drop.js": ("unpack.js", "draw.js", "drop.js"),
}
_WORKER = ("core.js", "csv.js", "worker.js")


def made() -> dict[str, str]:
    """Return the files that the pages load, by name; none where nothing can compile them."""
    module = compiled()
    if module is None:
        return {}
    packed = base64.b64encode(gzip.compress(module, 9, mtime=0)).decode()
    worker = json.dumps(_joined(_WORKER)).replace("</", "<\\/")
    files = {"core.js": f'window.truecastCore = "{packed}";\n'}
    for name, parts in _SCRIPTS.items():
        before = f'const WORKER = {worker};\nconst FLIGHTS = "{_flights()}";\n'
        before = before if name == "drop.js" else ""
        files[name] = f'(() => {{\n"use strict";\n{before}{_joined(parts)}\n}})();\n'
    return {f"{FOLDER}/{name}": text for name, text in files.items()}


def write_alone(folder: Path, site: Path | None = None) -> bool:
    """Write the pages without the rest of the site; False where nothing can compile them.

    What a site that was just built has of them is not compiled again.
    """
    files = (_made_for(site) if site else {}) or made()
    style = Path("stylesheets") / "browser.css"
    files |= {str(style): (SOURCES.parent / style).read_text()} if files else {}
    for page in PAGES if files else ():
        text = (SOURCES.parent / page).read_text()
        body = text[text.index("<link") : text.rindex("</script>")]
        title = f"<title>{page}</title>"
        files[page.replace(".md", ".html")] = (
            f"<!doctype html><meta charset=utf-8>{title}{body}</script>"
        )
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return bool(files)


def _made_for(site: Path) -> dict[str, str]:
    found = sorted((site / FOLDER).glob("*.js"))
    return {f"{FOLDER}/{path.name}": path.read_text() for path in found}


def compiled() -> bytes | None:
    """Return the core as a WebAssembly module; None if no compiler can make one."""
    for compiler in (os.environ.get("WASM_CXX"), *_COMPILERS):
        path = compiler and shutil.which(compiler)
        if not path:
            continue
        with tempfile.TemporaryDirectory() as folder:
            module = Path(folder) / "core.wasm"
            include = f"-I{ROOT / 'src' / 'truecast' / '_core'}"
            command = [path, *_OPTIONS.split(), include, str(SOURCES / "core.cpp"), "-o", module]
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return module.read_bytes()
            # a clang without the parts for WASI lacks the first header, or the linker
            if "core.cpp" in done.stderr and "file not found" not in done.stderr:
                raise RuntimeError(done.stderr)
    return None


def missing() -> str:
    """Say what is left out, and how to have it."""
    return (
        f"{' and '.join(PAGES)} left out: no clang++ here compiles for wasm32-wasi "
        f"(Debian: apt install {PACKAGES}; or WASM_CXX=path)"
    )


def _flights() -> str:
    """Every third flight of examples/scores.csv: 20,000 times its score, plus its outcome."""
    with (ROOT / "examples" / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[::3]
    return "".join(
        _three_digits(2 * round(10_000 * float(row["score"])) + int(row["outcome"])) for row in rows
    )


def _three_digits(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return "".join(digits[number // 36**k % 36] for k in (2, 1, 0))


def _joined(names: tuple[str, ...]) -> str:
    """Return scripts as one, without the lines that are comments and without indents."""
    lines = (line.strip() for name in names for line in (SOURCES / name).read_text().split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


if __name__ == "__main__":
    found = made()
    if not found:
        sys.exit(missing())
    for name, text in found.items():
        sys.stdout.write(f"{len(text):8,} bytes  {name}\n")
    sys.stdout.write(f"{sum(map(len, found.values())):8,} bytes in all\n")
