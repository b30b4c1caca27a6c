"""The readiness page in a real browser: what it shows, that it works, and that nothing in a tree can steer it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from portlint.cli import main

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if BROWSER is None:
    pytest.skip("no Chromium: apt-get install chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install '.[browser]'")

SOURCE = """__global__ void count_ayes(int* out, const int* in) {
    const unsigned votes = __ballot_sync(0xffffffff, in[threadIdx.x] > 0);
    if (threadIdx.x % 32 == 0) atomicAdd(out, __popc(votes)); // </script><script>alert(1)</script>
}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on a small tree whose names and code try to get out of it."""
    folder = tmp_path_factory.mktemp("page")
    tree = folder / "src"
    tree.mkdir()
    (tree / "votes.cu").write_text(SOURCE)
    (tree / '"><img src=x onerror=alert(1)>.cu').write_text(SOURCE)
    (tree / "train.py").write_text("import torch\n\nmodel = torch.nn.Linear(4, 4).to('cuda')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        targets = ("--target", "cdna3", "--target", "mps")
        result = CliRunner().invoke(main, ["report", "src", *targets, "--output-format", "html:out.html"])
    assert result.exit_code == 0, result.output
    return (folder / "out.html").as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    """The page, opened; it fails where anything was said on the console, asked of the network or shown as a dialog."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: (trouble.append("dialog"), dialog.dismiss()))
    opened.on("request", lambda request: trouble.append(request.url) if request.url != address else None)
    opened.goto(address)
    yield opened
    context.close()
    assert trouble == []


def test_a_number_of_the_matrix_opens_its_findings(page: Any) -> None:
    page.click("#matrix a[href='#r-lanes-warp-is-32@cdna3']")
    page.wait_for_selector("#r-lanes-warp-is-32[open]")
    assert page.locator("#r-lanes-warp-is-32 tbody tr:visible").count() == 2
    assert page.locator("#findings > details:visible").count() < page.locator("#findings > details").count()


def test_words_and_choices_filter(page: Any) -> None:
    page.fill("#filter input", "train.py")
    assert page.locator("#findings > details:visible").count() == 1
    assert page.inner_text("#shown") == "1 shown"
    page.select_option("#filter select[name=target]", "cdna3")
    assert page.inner_text("#shown") == "0 shown"
    page.click("#filter button")
    page.wait_for_function("!document.querySelector('#findings > details[hidden]')")


def test_a_file_that_costs_most_leads_to_its_findings(page: Any) -> None:
    page.click("#start a[data-file='src/votes.cu'] >> nth=0")
    visible = page.locator("#findings tbody tr:visible")
    assert visible.count() > 0
    assert all("src/votes.cu:" in text for text in visible.all_inner_texts())


def test_tables_sort(page: Any) -> None:
    page.click("#files summary")
    page.click("#files th button >> nth=0")
    downwards = page.locator("#files tbody td:first-child").all_inner_texts()
    page.click("#files th button >> nth=0")
    assert downwards == page.locator("#files tbody td:first-child").all_inner_texts()[::-1]
    assert page.get_attribute("#files th >> nth=0", "aria-sort") == "ascending"


def test_the_planning_figures_are_the_readers(page: Any) -> None:
    before = page.inner_text("#t-mps [data-work]")
    page.fill("#planning input[name=rewrite]", "80")
    assert page.inner_text("#t-mps [data-work]") != before


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_runs_off_the_side(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for group in page.locator("#findings summary").all():
        group.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_is_dark_where_the_reader_is(page: Any) -> None:
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


def test_print_shows_the_findings_that_are_open(page: Any) -> None:
    page.click("#findings summary >> nth=0")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("#findings details[open] tbody tr").first.is_visible()


def test_it_reads_without_its_script(chromium: Any, address: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(address)
    opened.click("#findings summary >> nth=0")
    assert opened.locator("#findings details[open] tbody tr").first.is_visible()
    context.close()


def test_hostile_names_are_text(page: Any) -> None:
    assert '"><img src=x onerror=alert(1)>.cu' in page.inner_text("#start")
    assert page.locator("img").count() == 0
