"""The places of a source file that a run may reach or not, and the same source with a probe at each of them.

A place is the beginning of a function, either way of an `if`, a round and the end of a loop, a case of a `match` or none
of them, a handler of an exception. Its name is its function and its text, so it outlives edits elsewhere. Probes cost some
nanoseconds, where tracing every line would make a run three times as long.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import NamedTuple

HITS = "__hits__"
"""The bytes of a module in which its probes leave a mark."""
NEVER_CALLED = "never called"
_TEXT_AT_MOST = 120

Name = tuple[str, str, str]
"""File, function, text."""


class Place(NamedTuple):
    """One of them."""

    file: str
    function: str
    text: str
    line: int
    """For people who look it up today; no part of the name."""
    inside: int | None
    """The place around it, by number: what lies inside of an unreached one needs no word."""
    shows: str
    """The first line that stands there, for a reader."""

    @property
    def name(self) -> Name:
        """What it is justified under."""
        return self.file, self.function, self.text


class Probed(NamedTuple):
    """A file with its probes; the place of probe n is the nth."""

    tree: ast.Module
    places: list[Place]


def probed(source: str, file: str) -> Probed:
    """Finds the places of a source file and puts a probe at each."""
    tree = ast.parse(source)
    return Probed(tree, _Prober(file).probe(tree))


class _Prober:
    def __init__(self, file: str) -> None:
        self._file = file
        self._places: list[Place] = []
        self._texts: Counter[tuple[str, str]] = Counter()

    def probe(self, tree: ast.Module) -> list[Place]:
        self._statements(tree.body, "(module)", None)
        ast.fix_missing_locations(tree)
        return self._places

    def _statements(self, body: list[ast.stmt], function: str, inside: int | None) -> None:
        for statement in body:
            self._statement(statement, function, inside)

    def _statement(self, statement: ast.stmt, function: str, inside: int | None) -> None:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not _is_declared_only(statement.body):
                    name = _below(function, statement.name)
                    self._arm(statement.body, NEVER_CALLED, statement, name, inside)
            case ast.ClassDef():
                self._statements(statement.body, _below(function, statement.name), inside)
            case ast.If():
                if _is_for_types(statement.test):
                    return
                text = f"if {ast.unparse(statement.test)}"
                self._arm(statement.body, f"{text} → yes", statement, function, inside)
                self._arm(statement.orelse, f"{text} → no", statement, function, inside)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(statement, function, inside)
            case ast.Match():
                self._match(statement, function, inside)
            case ast.Try() | ast.TryStar():
                self._statements(statement.body, function, inside)
                for handler in statement.handlers:
                    kind = f"except {ast.unparse(handler.type)}" if handler.type is not None else "except"
                    self._arm(handler.body, kind, handler, function, inside)
                self._statements(statement.orelse, function, inside)
                self._statements(statement.finalbody, function, inside)
            case ast.With() | ast.AsyncWith():
                self._statements(statement.body, function, inside)
            case _:
                pass

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, function: str, inside: int | None) -> None:
        if isinstance(loop, ast.While):
            if isinstance(loop.test, ast.Constant):
                self._statements(loop.body, function, inside)
                return
            text = f"while {ast.unparse(loop.test)}"
        else:
            text = f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"
        self._arm(loop.body, f"{text} → a round", loop, function, inside)
        self._arm(loop.orelse, f"{text} → the end", loop, function, inside)

    def _match(self, match: ast.Match, function: str, inside: int | None) -> None:
        for case in match.cases:
            guard = f" if {ast.unparse(case.guard)}" if case.guard is not None else ""
            text = f"case {ast.unparse(case.pattern)}{guard}"
            if not _is_for_type_checkers(case.body):
                self._arm(case.body, text, case.pattern, function, inside)
        last = match.cases[-1]
        if last.guard is not None or not _is_sure(last.pattern):
            body: list[ast.stmt] = []
            text = f"match {ast.unparse(match.subject)} → no case"
            self._arm(body, text, match, function, inside)
            match.cases.append(ast.match_case(pattern=ast.MatchAs(), guard=None, body=body))

    def _arm(
        self,
        body: list[ast.stmt],
        text: str,
        node: ast.stmt | ast.ExceptHandler | ast.pattern,
        function: str,
        inside: int | None,
    ) -> None:
        """A place at the beginning of these statements, and the places in them."""
        number = len(self._places)
        text = (
            text
            if len(text) <= _TEXT_AT_MOST
            else f"{text[: _TEXT_AT_MOST // 2]}…{text[-_TEXT_AT_MOST // 2 :]}"
        )
        self._texts[function, text] += 1
        count = self._texts[function, text]
        name = text if count == 1 else f"{text} ({count})"
        first = [statement for statement in body[:2] if not _is_docstring(statement)]
        shows = ast.unparse(first[0]).partition("\n")[0] if first else ""
        self._places.append(Place(self._file, function, name, node.lineno, inside, shows))
        self._statements(body, function, number)
        mark = ast.parse(f"{HITS}[{number}] = 1").body[0]
        for part in ast.walk(mark):
            if isinstance(part, ast.expr | ast.stmt):
                part.lineno = part.end_lineno = node.lineno
                part.col_offset = part.end_col_offset = node.col_offset
        body.insert(1 if body and _is_docstring(body[0]) and text == NEVER_CALLED else 0, mark)


def _below(function: str, name: str) -> str:
    return name if function == "(module)" else f"{function}.{name}"


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_declared_only(body: list[ast.stmt]) -> bool:
    """A method of a protocol: nothing but words, `...`, or that it is not there."""
    return all(
        (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.unparse(statement))
        for statement in body
    )


def _is_sure(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or _is_sure(pattern.pattern))


def _is_for_type_checkers(body: list[ast.stmt]) -> bool:
    return "assert_never(" in ast.unparse(body[0])


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
