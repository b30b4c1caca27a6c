"""Draw docs/img/report.png, the picture of the readiness page in the README. Needs Chromium and the extra `browser`.

Usage: python tools/report_picture.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from click.testing import CliRunner
from playwright.sync_api import sync_playwright

from portlint.cli import main

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "img" / "report.png"
TARGETS = ("cdna3", "tpu-v6e", "mps")
WIDTH, HEIGHT = 1180, 940


def draw(page: Path, picture: Path) -> None:
    """Open the page in Chromium and take its top."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        opened = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        opened.goto(page.as_uri())
        opened.screenshot(path=picture)
        chromium.close()


if __name__ == "__main__":
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        named = [word for target in TARGETS for word in ("--target", target)]
        result = CliRunner().invoke(main, ["report", "fixtures/demo", *named, "--output-format", f"html:{page}"])
        assert result.exit_code == 0, result.output
        draw(page, PICTURE)
