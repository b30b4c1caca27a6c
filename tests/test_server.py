"""`portlint server` with a real client: what an editor shows while somebody types."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="pygls is not installed: pip install '.[lsp]'")

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

VOTES = """__global__ void count_ayes(int* out, const int* in) {
    const unsigned votes = __ballot_sync(0xffffffff, in[threadIdx.x] > 0);
    if (threadIdx.x % 32 == 0) atomicAdd(out, __popc(votes));
}
"""
SECONDS = 60.0


class Editor(LanguageClient):
    """A client that keeps what the server publishes."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: list[str] = []

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

        @self.feature(lsp.WINDOW_SHOW_MESSAGE)
        def show(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

    def open(self, path: Path, language: str) -> str:
        text = path.read_bytes().decode()
        item = lsp.TextDocumentItem(path.as_uri(), language, 1, text)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return path.as_uri()

    def replace(self, uri: str, version: int, text: str) -> None:
        document = lsp.VersionedTextDocumentIdentifier(version, uri)
        self.text_document_did_change(
            lsp.DidChangeTextDocumentParams(document, [lsp.TextDocumentContentChangeWholeDocument(text)])
        )

    async def diagnostics(self, uri: str) -> list[lsp.Diagnostic]:
        """What is published next for a file."""
        while True:
            params = await asyncio.wait_for(self.published.get(), SECONDS)
            if params.uri == uri:
                return list(params.diagnostics)


def edit(folder: Path, work: Callable[[Editor], Awaitable[None]], **options: Any) -> Editor:
    """Start a server, do something with it as an editor, and end both."""

    async def session() -> Editor:
        editor = Editor()
        await editor.start_io(sys.executable, "-m", "portlint", "server")
        await editor.initialize_async(
            lsp.InitializeParams(
                capabilities=lsp.ClientCapabilities(), root_uri=folder.as_uri(), initialization_options=options
            )
        )
        editor.initialized(lsp.InitializedParams())
        try:
            await work(editor)
        finally:
            await asyncio.wait_for(editor.shutdown_async(None), SECONDS)
            editor.exit(None)
            await editor.stop()
        return editor

    return asyncio.run(session())


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "votes.cu"
    path.write_text(VOTES)
    return path


def test_findings_come_when_a_file_is_opened_and_go_when_it_is_mended(kernel: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        found = await editor.diagnostics(uri)
        assert {one.code for one in found} == {"lanes/mask-is-32-bit", "lanes/warp-is-32"}
        width = next(one for one in found if one.code == "lanes/warp-is-32")
        assert width.range.start == lsp.Position(2, VOTES.splitlines()[2].index("threadIdx"))
        assert "64 lanes per wavefront" in width.message
        editor.replace(uri, 2, "__global__ void nothing() {}\n")
        assert await editor.diagnostics(uri) == []

    edit(kernel.parent, work, targets=["cdna3"])


def test_only_the_last_of_many_texts_is_analysed(kernel: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        await editor.diagnostics(uri)
        for version in range(2, 30):
            editor.replace(uri, version, VOTES + f"// {version}\n")
        params = await asyncio.wait_for(editor.published.get(), SECONDS)
        assert params.version == 29
        await asyncio.sleep(0.5)
        assert editor.published.empty()

    edit(kernel.parent, work, targets=["cdna3"])


def test_columns_count_as_the_editor_counts(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch\n\nx = torch.zeros(3); y = '𝄞'; z = torch.ones(3, device='cuda')\n")

    async def work(editor: Editor) -> None:
        uri = editor.open(path, "python")
        (found,) = await editor.diagnostics(uri)
        line = path.read_text().splitlines()[2]
        column = line.index("'cuda'") + 1  # the clef is two units of UTF-16
        assert found.range.start == lsp.Position(2, column)

    edit(tmp_path, work, targets=["mps"])


def test_hovering_tells_fact_source_and_remedy(kernel: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        found = await editor.diagnostics(uri)
        width = next(one for one in found if one.code == "lanes/warp-is-32")
        document = lsp.TextDocumentIdentifier(uri)
        hover = await editor.text_document_hover_async(lsp.HoverParams(document, width.range.start))
        assert hover is not None
        assert isinstance(hover.contents, lsp.MarkupContent)
        for words in ("64 lanes per wavefront", "https://", "`warpSize`"):
            assert words in hover.contents.value
        nothing = await editor.text_document_hover_async(lsp.HoverParams(document, lsp.Position(0, 0)))
        assert nothing is None

    edit(kernel.parent, work, targets=["cdna3"])


def test_a_fix_is_a_code_action(kernel: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        found = await editor.diagnostics(uri)
        width = next(one for one in found if one.code == "lanes/warp-is-32")
        document = lsp.TextDocumentIdentifier(uri)
        given = lsp.CodeActionParams(document, width.range, lsp.CodeActionContext([width]))
        actions = await editor.text_document_code_action_async(given)
        assert actions is not None
        titles = [action.title for action in actions]
        assert "portlint: mend lanes/warp-is-32" in titles
        action = actions[titles.index("portlint: mend lanes/warp-is-32")]
        assert isinstance(action, lsp.CodeAction)
        assert action.edit is not None
        assert action.edit.changes is not None
        (edit,) = action.edit.changes[uri]
        line = VOTES.splitlines()[edit.range.start.line]
        mended = line[: edit.range.start.character] + edit.new_text + line[edit.range.end.character :]
        assert "threadIdx.x % warpSize == 0" in mended

    edit(kernel.parent, work, targets=["cdna3"])


def test_the_configuration_is_read_again(kernel: Path) -> None:
    configuration = kernel.parent / "portlint.toml"
    configuration.write_text('target = ["cdna3"]\n')

    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        assert len(await editor.diagnostics(uri)) > 1
        configuration.write_text('target = ["cdna3"]\nselect = ["lanes/warp-is-32"]\n')
        change = lsp.FileEvent(configuration.as_uri(), lsp.FileChangeType.Changed)
        editor.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([change]))
        assert [one.code for one in await editor.diagnostics(uri)] == ["lanes/warp-is-32"]

    edit(kernel.parent, work)


def test_what_is_missing_is_said_once(kernel: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        assert await editor.diagnostics(uri) == []
        editor.replace(uri, 2, VOTES)
        assert await editor.diagnostics(uri) == []

    assert ["no target" in one for one in edit(kernel.parent, work).messages] == [True]


def test_a_text_that_crashes_parsers_costs_only_itself(kernel: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(kernel, "cuda")
        await editor.diagnostics(uri)
        editor.replace(uri, 2, "(" * 5_000)
        assert await editor.diagnostics(uri) == []
        editor.replace(uri, 3, VOTES)
        assert len(await editor.diagnostics(uri)) > 1

    edit(kernel.parent, work, targets=["cdna3"])


WHERE = "import torch\nFAST = torch.{}.is_available()\n"
USER = """import torch
from where import FAST

def make():
    return torch.zeros(4, device="cuda") if FAST else torch.zeros(4)
"""


def test_what_another_file_says_counts_once_it_is_saved(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    where = tmp_path / "where.py"
    where.write_text(WHERE.format("cuda"))
    user = tmp_path / "user.py"
    user.write_text(USER)

    async def work(editor: Editor) -> None:
        uri = editor.open(user, "python")
        assert await editor.diagnostics(uri) == []
        where.write_text(WHERE.format("backends.mps"))
        identifier = lsp.TextDocumentIdentifier(where.as_uri())
        editor.text_document_did_save(lsp.DidSaveTextDocumentParams(identifier))
        editor.replace(uri, 2, USER + "\n")
        assert [one.code for one in await editor.diagnostics(uri)] == ["device/is-cuda"]

    edit(tmp_path, work, targets=["mps"])


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
def test_no_process_is_left_when_the_server_is_killed() -> None:
    async def session() -> set[int]:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "portlint", "server", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
        )
        for _ in range(int(SECONDS * 10)):
            if len(below := descendants(server.pid)) == 2:
                break
            await asyncio.sleep(0.1)
        server.kill()
        await server.wait()
        return below

    below = asyncio.run(session())
    assert len(below) == 2
    deadline = time.monotonic() + SECONDS
    while any(map(is_alive, below)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, below))


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and those that they started."""
    children = {int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return children.union(*map(descendants, children))


def is_alive(pid: int) -> bool:
    """Whether a process is there, and not merely unburied."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
