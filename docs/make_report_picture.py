"""Take the pictures of the sample report that docs/report.md shows where the code is read.

    python docs/make_report_picture.py     # needs playwright, pillow and Chromium

The site has the report itself: scripts/docs_hook.py makes it.
"""

from __future__ import annotations

import io
import runpy
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1000, 960


def main() -> None:
    """Open the report on a light and on a dark page, and keep the first screen of each."""
    sys.path.insert(0, str(HERE.parent / "scripts"))
    html = runpy.run_path(str(HERE.parent / "scripts" / "docs_hook.py"))["_sample_report"]()
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme
            )
            page.set_content(html)
            shot = Image.open(io.BytesIO(page.screenshot()))
            shot.quantize(48).save(HERE / f"sample-report-{scheme}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
