"""`portlint server`: findings in an editor, as you type, over the Language Server Protocol.

The analysis runs in a process of its own (`portlint/analyst.py`). While somebody types, only the last text is analysed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from portlint import __version__
from portlint.analyst import Analyst, Question
from portlint.finding import Edit, Finding, Verdict
from portlint.report.escape import printable

if TYPE_CHECKING:
    from pygls.workspace import TextDocument

PAUSE_SECONDS = 0.15
"""how long nobody types before a text is analysed"""
CONFIGURATIONS = ("portlint.toml", ".portlint.toml", "pyproject.toml")
_SOURCES = ("*.py", "*.{cu,cuh,hip}", "*.{c,cc,cpp,cxx}", "*.{h,hh,hpp,hxx,inl}", "CMakeLists.txt", "*.cmake")
"""what an analysis of another file may have read"""
_RULE_PAGES = "https://github.com/portlint/portlint/blob/main/docs/rules"
_SEVERITIES = {
    Verdict.CORRUPTS: lsp.DiagnosticSeverity.Error,
    Verdict.BREAKS: lsp.DiagnosticSeverity.Error,
    Verdict.DEGRADES: lsp.DiagnosticSeverity.Warning,
    Verdict.UNKNOWN: lsp.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """What is known of the open files."""

    def __init__(self, analyst: Analyst) -> None:
        super().__init__("portlint", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
        self.analyst = analyst
        self.targets: tuple[str, ...] = ()
        self.found: dict[str, tuple[Finding, ...]] = {}
        """address of a file -> findings in the text that was analysed last"""
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._said: set[str] = set()

    def schedule(self, uri: str, pause: float) -> None:
        """Analyse a file soon, and only once however often it changes until then."""
        if (earlier := self._waiting.pop(uri, None)) is not None:
            earlier.cancel()
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._analyse(uri, pause))

    async def _analyse(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        document = self.workspace.get_text_document(uri)
        path = _path(uri)
        folder = str(Path(path).parent) if path else "."
        name = path or uri
        version = document.version
        answer = await self.analyst.ask(Question(folder, name, document.source, self.targets))
        if answer.mistake and answer.mistake not in self._said:
            self._said.add(answer.mistake)
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"portlint: {answer.mistake}"))
        self.found[uri] = answer.findings
        diagnostics = [self._diagnostic(document, group) for group in by_place(answer.findings)]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    def forget(self, uri: str) -> None:
        """The file was closed."""
        if (earlier := self._waiting.pop(uri, None)) is not None:
            earlier.cancel()
        self.found.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def renew(self, changed: Sequence[str]) -> None:
        """Files have changed on the disk; where one of them is a configuration, every open file is checked again."""
        self.analyst.renew()
        if any(Path(_path(uri) or "").name in CONFIGURATIONS for uri in changed):
            self._said.clear()
            for uri in list(self.workspace.text_documents):
                self.schedule(uri, 0.0)

    def _diagnostic(self, document: TextDocument, group: Sequence[Finding]) -> lsp.Diagnostic:
        """One for all targets that share a place and a rule."""
        first = min(group, key=lambda one: one.verdict.rank)
        message = "\n".join(f"{one.target}: {one.message}" for one in group)
        return lsp.Diagnostic(
            range=self.range(document, first),
            message=printable(message, keep="\n"),
            severity=_SEVERITIES[first.verdict],
            code=first.rule,
            code_description=lsp.CodeDescription(f"{_RULE_PAGES}/{first.rule}.md"),
            source="portlint",
        )

    def range(self, document: TextDocument, finding: Finding) -> lsp.Range:
        """Where a finding stands, in the units of the client."""
        lines = document.lines
        return lsp.Range(
            self._position(lines, finding.line, finding.column),
            self._position(lines, finding.end_line, finding.end_column),
        )

    def _position(self, lines: Sequence[str], line: int, column: int) -> lsp.Position:
        before = lines[line - 1][: column - 1] if line <= len(lines) else ""
        return lsp.Position(line - 1, self.workspace.position_codec.client_num_units(before))

    def at(self, uri: str, within: lsp.Range) -> list[Finding]:
        """The findings that touch a range, in the order of a report."""
        document = self.workspace.get_text_document(uri)
        return [one for one in self.found.get(uri, ()) if _overlap(self.range(document, one), within)]

    def edits(self, document: TextDocument, edits: Sequence[Edit]) -> list[lsp.TextEdit]:
        """Edits of bytes as edits of lines and columns."""
        text = document.source.encode()
        return [
            lsp.TextEdit(lsp.Range(self._at_byte(text, one.start), self._at_byte(text, one.end)), one.text)
            for one in edits
        ]

    def _at_byte(self, text: bytes, offset: int) -> lsp.Position:
        start = text.rfind(b"\n", 0, offset) + 1
        before = text[start:offset].decode("utf-8", "replace")
        return lsp.Position(text.count(b"\n", 0, start), self.workspace.position_codec.client_num_units(before))


def by_place(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one rule at one place together, the worst target first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault(one.order[:-1], []).append(one)
    return [sorted(group, key=lambda one: one.verdict.rank) for group in groups.values()]


def hover_text(findings: Sequence[Finding]) -> str:
    """What stands behind findings, as Markdown: the fact, its source, and the remedy."""
    parts = []
    for group in by_place(findings):
        first = min(group, key=lambda one: one.verdict.rank)
        parts.append(f"**{first.verdict}** [{first.rule}]({_RULE_PAGES}/{first.rule}.md)")
        for one in group:
            cite = f" ([{_plain(one.fact.cite.title)}]({one.fact.cite.url}))" if one.fact.cite else ""
            parts.append(f"{one.target}: {_plain(one.fact.text)}{cite}. {printable(one.remedy)}")
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    return printable(text).replace("[", "(").replace("]", ")").replace("<", "&lt;")


def _overlap(one: lsp.Range, other: lsp.Range) -> bool:
    def order(position: lsp.Position) -> tuple[int, int]:
        return position.line, position.character

    return order(one.start) <= order(other.end) and order(other.start) <= order(one.end)


def _path(uri: str) -> str | None:
    """The path of a file address; None for a text that is no file."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else None


def create(analyst: Analyst) -> Server:
    """The server with all that it answers."""
    server = Server(analyst)

    @server.feature(lsp.INITIALIZED)
    def initialized(_: lsp.InitializedParams) -> None:
        watched = [lsp.FileSystemWatcher(glob_pattern=f"**/{name}") for name in (*CONFIGURATIONS, *_SOURCES)]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watched)
        kind = lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
        capabilities = server.client_capabilities.workspace
        watching = capabilities and capabilities.did_change_watched_files
        if watching and watching.dynamic_registration:
            registration = lsp.Registration("portlint-files", kind, options)
            server.client_register_capability(lsp.RegistrationParams([registration]))

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        named = options.get("targets") if isinstance(options, dict) else getattr(options, "targets", None)
        if isinstance(named, list | tuple):
            server.targets = tuple(map(str, named))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.schedule(params.text_document.uri, 0.0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.schedule(params.text_document.uri, PAUSE_SECONDS)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        server.renew([params.text_document.uri])

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.renew([change.uri for change in params.changes])

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        here = lsp.Range(params.position, params.position)
        findings = server.at(params.text_document.uri, here)
        text = lsp.MarkupContent(lsp.MarkupKind.Markdown, hover_text(findings))
        return lsp.Hover(text) if findings else None

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = server.workspace.get_text_document(uri)
        return [
            lsp.CodeAction(
                title=f"portlint: mend {one.rule}{'' if one.safe else ' (may change what the code does)'}",
                kind=lsp.CodeActionKind.QuickFix,
                edit=lsp.WorkspaceEdit(changes={uri: server.edits(document, one.edits)}),
            )
            for one in {edited.edits: edited for edited in server.at(uri, params.range) if edited.edits}.values()
        ]

    return server


def serve() -> None:
    """Serve an editor over standard input and output until it goes away."""
    analyst = Analyst()
    try:
        create(analyst).start_io()
    finally:
        analyst.close()
