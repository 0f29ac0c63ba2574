"""Writes the blocking client from the source of the asynchronous one: the same classes, methods, types and docs without `await`.

Run it with `make blocking` after a change of `src/penstock/client`. A test fails while it is not done.

The rules: a coroutine, or a method that returns a future, is called on the event loop's thread and waited for. So is a plain method,
because the asynchronous client is for one thread; those in `direct` only read what never changes. An asynchronous iterator
becomes an iterator. What comes out of an asynchronous class is wrapped in its blocking twin, and unwrapped where it is given
back. An `Iterable` is read on the caller's thread: a generator may use the blocking client itself.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent, indent
from typing import NamedTuple

from scripts.blocking_twins import TWINS, Twin

ROOT = Path(__file__).parents[1]
PACKAGE = "penstock.client.blocking"
_WHERE = ROOT / "src" / "penstock" / "client" / "blocking"

Function = ast.FunctionDef | ast.AsyncFunctionDef


_BY_NAME = {name: twin for twin in TWINS for name in (twin.name, *twin.others)}
_RENAMED = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
}
_KEPT = {"__repr__", *_RENAMED}
_ALWAYS = {
    "Bridge": "penstock.client.blocking.bridge",
    "MESSAGES_PER_CROSSING": "penstock.client.blocking.bridge",
    "ProducerError": "penstock.client.produce.outgoing_batch",
    "Iterator": "collections.abc",
    "Sequence": "collections.abc",
    "islice": "itertools",
    "overload": "typing",
    "Self": "typing",
    "TracebackType": "types",
    **{twin.blocking_name: f"{PACKAGE}.{twin.to}" for twin in TWINS},
    "blocking": f"{PACKAGE}.delivered",
}


# -- reading the asynchronous client ------------------------------------------------------------------------------


class Module:
    """A module as its source says it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = (ROOT / "src" / Path(*name.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        self.names: dict[str, str] = {}
        """Every name of the module, and which module it comes from."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                self.names |= {alias.asname or alias.name: node.module for alias in node.names}
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.names[node.name] = name
            elif isinstance(node, ast.Assign):
                self.names |= {one.id: name for one in node.targets if isinstance(one, ast.Name)}

    def segment(self, node: ast.expr) -> str:
        """An expression as it was written."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)


@cache
def module_of(name: str) -> Module:
    """The module of that name, read once."""
    return Module(name)


class Member(NamedTuple):
    """Something public of an asynchronous class."""

    module: Module
    node: Function | ast.AnnAssign | ast.Assign
    annotation: str = ""
    """The type of an attribute."""


def members_of(module: Module, name: str, known: dict[str, Member] | None = None) -> dict[str, Member]:
    """All public members by name, those of base classes last, and what the class says itself first."""
    found: dict[str, Member] = {} if known is None else known
    node = module.classes[name]
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            if part.name == "__init__":
                _attributes(module, part, found)
            elif part.name in _KEPT or not part.name.startswith("_"):
                found.setdefault(part.name, Member(module, part))
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            if not part.target.id.startswith("_"):
                found.setdefault(part.target.id, Member(module, part, module.segment(part.annotation)))
        elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
            for target in part.targets:
                if isinstance(target, ast.Name) and target.id not in {"__slots__"}:
                    found.setdefault(target.id, Member(module, part))
    for base in node.bases:
        base_name = ast.unparse(base).partition("[")[0]
        where = module.names.get(base_name, "")
        if where.startswith("penstock.") and base_name != "MessageView":  # a blocking message is one itself
            members_of(module_of(where), base_name, found)
    return found


def _attributes(module: Module, init: Function, found: dict[str, Member]) -> None:
    """The public attributes that `__init__` sets; each must say its type."""
    given = {
        one.arg: module.segment(one.annotation)
        for one in (*init.args.args, *init.args.kwonlyargs)
        if one.annotation
    }
    for part in ast.walk(init):
        if isinstance(part, ast.AnnAssign) and (name := _of_self(part.target)):
            found.setdefault(name, Member(module, part, module.segment(part.annotation)))
        elif isinstance(part, ast.Assign) and len(part.targets) == 1 and (name := _of_self(part.targets[0])):
            value = part.value
            annotation = given.get(value.id, "") if isinstance(value, ast.Name) else ""
            if isinstance(value, ast.Constant):
                annotation = type(value.value).__name__
            found.setdefault(name, Member(module, part, annotation))


def _of_self(target: ast.expr) -> str:
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return "" if target.attr.startswith("_") else target.attr
    return ""


def _attribute_doc(member: Member) -> str:
    """What stands below an attribute."""
    for holder in ast.walk(member.module.tree):
        body = getattr(holder, "body", None)
        if isinstance(body, list) and member.node in body:
            following = body[body.index(member.node) + 1 :][:1]
            for node in following:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    return str(node.value.value)
    return ""


# -- writing the blocking one -------------------------------------------------------------------------------------


def _blocked(text: str) -> str:
    """Types, or docs, as they are for the blocking client."""
    for name, twin in _BY_NAME.items():
        text = re.sub(rf"(?<![\w.`]){name}(?!\w)", twin.blocking_name, text)
    return text


def _doc(text: str) -> str:
    text = text.replace("async with", "with").replace("async for", "for").replace("`await ", "`")
    for name, twin in _BY_NAME.items():
        text = re.sub(rf"`{name}(?=[`(])", f"`{twin.blocking_name}", text)
    return text


def _docstring(text: str) -> str:
    lines = [line.strip() for line in _doc(text).split("\n")]
    if len(lines) == 1:
        return f'"""{lines[0]}"""'
    return '"""' + "\n".join(lines).rstrip() + '\n"""'


def _wrapped(annotation: str, value: str) -> str:
    """What comes out of the asynchronous client, for a user of the blocking one."""
    if annotation == "Message":
        return f"blocking(self._bridge, {value})"
    if annotation in _BY_NAME:
        return f"{_BY_NAME[annotation].blocking_name}(self._bridge, {value})"
    if (found := re.fullmatch(r"dict\[str, (\w+)\]", annotation)) and found[1] in _BY_NAME:
        return f"{{name: {_wrapped(found[1], 'one')} for name, one in {value}.items()}}"
    if (found := re.fullmatch(r"list\[(\w+)\]", annotation)) and found[1] in _BY_NAME:
        return f"[{_wrapped(found[1], 'one')} for one in {value}]"
    if re.search(rf"\b({'|'.join(_BY_NAME)})\b", annotation):
        raise ValueError(f"no rule says how {annotation} is wrapped")
    return value


def _given(name: str, annotation: str) -> str:
    """An argument as the asynchronous client takes it."""
    if found := re.fullmatch(r"Iterable\[(\w+)\]( \| None)?", annotation):
        twin = _BY_NAME.get(found[1])
        taken = f"[one.{twin.field} for one in {name}]" if twin else f"list({name})"
        return f"None if {name} is None else {taken}" if found[2] else taken
    if re.search(rf"\b({'|'.join(_BY_NAME)})\b", annotation):
        raise ValueError(f"no rule says how {annotation} is unwrapped")
    return name


def _parameters(module: Module, node: Function) -> tuple[list[str], list[str]]:
    """The parameters as they are declared, and the arguments as they are handed on."""
    declared, handed = [], []
    arguments = node.args
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    plain = list(zip(arguments.args, [*missing, *arguments.defaults], strict=True))[1:]
    keyword = list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    for place, (one, default) in enumerate([*plain, *keyword]):
        if place == len(plain):
            declared.append("*")
        annotation = module.segment(one.annotation) if one.annotation else ""
        text = f"{one.arg}: {_blocked(annotation)}"
        if default is not None:
            text += f" = {module.segment(default)}"
        if one.arg in dir(builtins):
            text += ",  # noqa: A002  # the word that users expect\n"
        declared.append(text)
        value = _given(one.arg, annotation)
        handed.append(value if place < len(plain) else f"{one.arg}={value}")
    if arguments.kwarg is not None and arguments.kwarg.annotation is not None:
        declared.append(f"**{arguments.kwarg.arg}: {module.segment(arguments.kwarg.annotation)}")
        handed.append(f"**{arguments.kwarg.arg}")
    return declared, handed


def _signature(name: str, declared: list[str], returned: str) -> str:
    inside = ""
    for one in ["self", *declared]:
        inside += one if one.endswith("\n") else f"{one}, "
    return f"def {name}({inside.removesuffix(', ')}) -> {returned}:"


def _method(twin: Twin, module: Module, node: Function) -> str:
    name = twin.renamed.get(node.name, _RENAMED.get(node.name, node.name))
    returned = module.segment(node.returns) if node.returns else "None"
    declared, handed = _parameters(module, node)
    target = f"self.{twin.field}.{node.name}"
    doc = twin.docs.get(node.name, ast.get_docstring(node) or "")
    if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list):
        body = f"return {_wrapped(returned, target)}"
        return f"@property\n{_signature(name, declared, _blocked(returned))}\n{_block(doc, body)}"
    if found := re.fullmatch(r"(?:AsyncIterator|AsyncGenerator)\[(\w+)\]", returned):
        returned, body = f"Iterator[{found[1]}]", _iteration(twin, node, handed)
    else:
        if found := re.fullmatch(r"asyncio\.Future\[(\w+)\]", returned):
            returned = found[1]
        body = _call(twin, node, returned, handed, waits=found is not None)
    body = twin.bodies.get(node.name, body).strip()
    return f"{_signature(name, declared, _blocked(returned))}\n{_block(doc, body)}"


def _call(twin: Twin, node: Function, returned: str, handed: list[str], *, waits: bool) -> str:
    """The body of a method that calls the one method of the asynchronous object."""
    target = f"self.{twin.field}.{node.name}"
    match node.name:
        case "__repr__":
            return f"return repr(self.{twin.field})"
        case "__aiter__" if returned == "Self":
            return "return self"
        case "__aenter__":
            return f"self._bridge.call({target})\nreturn self"
        case "__anext__":
            call = _wrapped(returned, f"self._bridge.call({target})")
            return f"try:\n    return {call}\nexcept StopAsyncIteration:\n    raise StopIteration from None"
        case "__aexit__" | "aclose" | "close":
            return f"self._bridge.end({', '.join([target, *handed])})"
        case _:
            pass
    if node.name in twin.direct:
        call = f"{target}({', '.join(handed)})"
    elif any(one.startswith("**") for one in handed):  # which no generic type can carry
        call = f"self._bridge.run({target}({', '.join(handed)}))"
    else:
        way = "call" if waits or isinstance(node, ast.AsyncFunctionDef) else "call_plain"
        call = f"self._bridge.{way}({', '.join([target, *handed])})"
    return call if returned == "None" else f"return {_wrapped(returned, call)}"


def _iteration(twin: Twin, node: Function, handed: list[str]) -> str:
    """The body of an asynchronous iterator. One that goes through pages crosses over for each page, not for each item."""
    statements = [one for one in node.body if not _is_docstring(one)]
    if (
        len(statements) == 1
        and isinstance(outer := statements[0], ast.AsyncFor)
        and isinstance(outer.iter, ast.Call)
        and isinstance(outer.iter.func, ast.Attribute)
        and isinstance(inner := outer.body[0], ast.For)
    ):
        pages = f"self.{twin.field}.{outer.iter.func.attr}({', '.join(map(ast.unparse, outer.iter.args))})"
        return f"for {ast.unparse(outer.target)} in self._bridge.each({pages}):\n    yield from {ast.unparse(inner.iter)}"
    return f"yield from self._bridge.each(self.{twin.field}.{node.name}({', '.join(handed)}))"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _block(doc: str, body: str) -> str:
    text = f"{_docstring(doc)}\n{body}" if doc else body
    return indent(text, "    ")


def _attribute(twin: Twin, name: str, member: Member) -> str:
    if not member.annotation:
        raise ValueError(f"{twin.name}.{name} is public and has no type: annotate it, or name it in `inner`")
    body = f"return {_wrapped(member.annotation, f'self.{twin.field}.{name}')}"
    doc = _attribute_doc(member) or f"The {name} that it was made with."
    return f"@property\n{_signature(name, [], _blocked(member.annotation))}\n{_block(twin.docs.get(name, doc), body)}"


def _class(twin: Twin) -> str:
    module = module_of(twin.source)
    node = module.classes[twin.name]
    bases = [ast.unparse(base) for base in node.bases]
    parts = list(_beginning(twin, bases))
    members = members_of(module, twin.name)
    if gone := twin.inner - set(members):
        raise ValueError(f"{twin.name} has no {', '.join(gone)} any more")
    for name, member in members.items():
        if name in twin.inner:
            continue
        if isinstance(member.node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(_method(twin, member.module, member.node))
        elif isinstance(member.node, ast.Assign) and not _of_self(member.node.targets[0]):
            parts.append(f"{name} = {ast.unparse(member.node.value)}")  # another name of a method
        else:
            parts.append(_attribute(twin, name, member))
    parts += [
        dedent(text).strip()
        for name, text in twin.bodies.items()
        if name != "__init__" and name not in members
    ]
    doc = _docstring(twin.docs.get("", ast.get_docstring(node) or ""))
    base = "(MessageView, eq=False)" if twin.name == "Message" else ""
    if "Sequence[Message]" in bases:
        base = "(Sequence[BlockingMessage])"
    body = "\n\n".join([doc, *parts])
    text = f"class {twin.blocking_name}{base}:\n{indent(body, '    ')}\n"
    return text + (_MADE_OF_A_MESSAGE if twin.name == "Message" else "")


_MADE_OF_A_MESSAGE = '''

def blocking(bridge: Bridge, message: Message) -> BlockingMessage:
    """The message as the blocking client shows it."""
    return BlockingMessage(*message.place, bridge, message)
'''
_SEQUENCE = """
def __len__(self) -> int:
    return len(self._messages)

def __iter__(self) -> Iterator[BlockingMessage]:
    for message in self._messages:
        yield blocking(self._bridge, message)

@overload
def __getitem__(self, index: int) -> BlockingMessage: ...
@overload
def __getitem__(self, index: slice) -> list[BlockingMessage]: ...
def __getitem__(self, index: int | slice) -> BlockingMessage | list[BlockingMessage]:
    if isinstance(index, slice):
        return [blocking(self._bridge, message) for message in self._messages[index]]
    return blocking(self._bridge, self._messages[index])
"""


def _beginning(twin: Twin, bases: list[str]) -> Iterator[str]:
    """How it is made, and what sequences have."""
    if twin.name == "Message":  # a struct because it is made in C, in a third of the time
        yield f'_bridge: Bridge\n{twin.field}: {twin.name}\n"""Its twin on the event loop."""'
        return
    kinds = " | ".join((twin.name, *twin.others))
    if twin.many:
        yield f'__slots__ = ("_bridge", "{twin.field}")'
    yield twin.bodies.get(
        "__init__",
        f"def __init__(self, bridge: Bridge, {twin.field.lstrip('_')}: {kinds}) -> None:\n"
        f"    self._bridge = bridge\n    self.{twin.field} = {twin.field.lstrip('_')}",
    ).strip()
    if "Sequence[Message]" in bases:
        yield _SEQUENCE.strip()


def _imports(to: str, twins: list[Twin], code: str) -> str:
    """Imports of every name that the code uses and does not define."""
    tree = ast.parse(code)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    known: dict[str, str] = {}
    for twin in twins:
        modules = [
            module_of(twin.source),
            *(m.module for m in members_of(module_of(twin.source), twin.name).values()),
        ]
        for module in reversed(modules):
            known |= module.names
    known |= _ALWAYS | {
        "GroupConsumer": "penstock.client.consume.group_consumer",
        "MessageView": "penstock.client.consume.message",
    }
    wanted: dict[str, set[str]] = {}
    for name in used - defined:
        if (where := known.get(name)) is not None and where != f"{PACKAGE}.{to}":
            wanted.setdefault(where, set()).add(name)
    return "\n".join(
        f"from {where} import {', '.join(sorted(names))}" for where, names in sorted(wanted.items())
    )


def sources() -> dict[Path, str]:
    """Every file of the blocking client that is made, with what should be in it."""
    made: dict[Path, str] = {}
    for to in dict.fromkeys(twin.to for twin in TWINS):
        twins = [twin for twin in TWINS if twin.to == to]
        code = "\n\n".join(map(_class, twins))
        named = ", ".join(dict.fromkeys(f"`{twin.source}`" for twin in twins))
        doc = f'"""Made from {named} by `make blocking`: do not edit."""'
        text = f"{doc}\n\nfrom __future__ import annotations\n\n{_imports(to, twins, code)}\n\n\n{code}"
        made[_WHERE / f"{to}.py"] = _formatted(text)
    return made


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    for arguments in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [str(ruff), *arguments, "--stdin-filename", "src/penstock/client/blocking/made.py", "-"]
        text = subprocess.run(
            command, input=text, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> int:
    """Writes what is not as it should be; says what was written."""
    for path, text in sources().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
