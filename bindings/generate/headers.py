# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers with libclang: which declarations and comments there are, and where.

A Header holds Items (declarations and macros) and Comments in the order of the file. Nothing is
interpreted here; describe.py does that.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path

from clang import cindex
from clang.cindex import CursorKind, TokenKind, TypeKind

from .wrong import Wrong

# Any MPI may be installed, or none. The description does not depend on it.
MPI = "typedef struct MPI_Comm_ *MPI_Comm;\n"
# Included by catena.h, or by programs with special needs.
EXTRA = ("model.h", "mpi.h")


@dataclass
class Comment:
    first: int  # line
    last: int
    own_line: bool  # no code stands before it in its first line
    text: str


@dataclass
class Item:
    kind: str  # handle, struct, enum, callback, function, variable, macro
    name: str
    first: int  # line
    last: int
    cursor: object
    tokens: list = field(default_factory=list)  # macros only: what follows the name
    function_like: bool = False  # macros only


@dataclass
class Header:
    name: str
    comments: list
    items: list


def parse(include, text, options=0):
    """The translation unit of a program that consists of `text`."""
    files = [("program.c", text), (str(include / "mpi.h"), MPI)]
    args = [f"-I{include}", "-std=c11"]
    return cindex.Index.create().parse("program.c", args, files, options)


def read(include):
    """(list of Header sorted by name, {macro: value} of the macros that are integers)"""
    include = Path(include)
    names = ["catena.h", *(name for name in EXTRA if (include / "catena" / name).is_file())]
    text = "".join(f"#include <catena/{name}>\n" for name in names)
    unit = parse(include, text, cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    if unit.diagnostics:
        raise Wrong("\n".join(map(str, unit.diagnostics)))
    found = {}
    for cursor in unit.cursor.get_children():
        path = cursor.location.file and Path(cursor.location.file.name)
        if path and path.parent == include / "catena":
            found.setdefault(path, []).append(cursor)
    headers = []
    for path in sorted((include / "catena").glob("*.h")):
        if path not in found:
            raise Wrong(f"catena.h does not include {path.name}: add it there")
        headers.append(Header(path.name, comments(unit, path), items(found[path])))
    return headers, integers(include, text, headers)


def comments(unit, path):
    """Comments of one file. A comment is at the start of its line if no token precedes it there."""
    file = unit.get_file(str(path))
    size = path.stat().st_size
    extent = cindex.SourceRange.from_locations(
        cindex.SourceLocation.from_offset(unit, file, 0),
        cindex.SourceLocation.from_offset(unit, file, size))
    result, line = [], 0
    for token in unit.get_tokens(extent=extent):
        start, end = token.extent.start.line, token.extent.end.line
        if token.kind == TokenKind.COMMENT:
            result.append(Comment(start, end, line < start, token.spelling))
        line = end
    return result


def items(cursors):
    """Items of one file by position. A type and its typedef are one item."""
    typedefs = {struct_of(c).hash for c in cursors
                if c.kind == CursorKind.TYPEDEF_DECL and struct_of(c)}
    result = []
    for cursor in cursors:
        if cursor.hash in typedefs:
            continue
        item = make_item(cursor)
        if item:
            result.append(item)
    spans = [(i.first, i.last) for i in result if i.kind == "enum"]
    result = [i for i in result  # a macro inside an enum only makes its constants
              if i.kind != "macro" or not any(a < i.first < b for a, b in spans)]
    return sorted(result, key=lambda i: (i.cursor.extent.start.offset, i.name))


def struct_of(typedef):
    """The struct or enum that a typedef names, None for other types."""
    declaration = typedef.underlying_typedef_type.get_declaration()
    known = (CursorKind.STRUCT_DECL, CursorKind.ENUM_DECL)
    return declaration if declaration.kind in known else None


def make_item(cursor):
    kind, name, tokens, function_like = None, cursor.spelling, [], False
    if cursor.kind == CursorKind.FUNCTION_DECL:
        kind = "function"
    elif cursor.kind == CursorKind.VAR_DECL:
        kind = "variable"
    elif cursor.kind == CursorKind.ENUM_DECL:  # without a typedef: it has no name
        kind, name = "enum", next(cursor.get_children()).spelling
    elif cursor.kind == CursorKind.TYPEDEF_DECL:
        kind = typedef_kind(cursor)
    elif cursor.kind == CursorKind.MACRO_DEFINITION and re.match(r"ctn_|CTN_", name):
        kind, function_like = "macro", cindex.conf.lib.clang_Cursor_isMacroFunctionLike(cursor)
        tokens = [t.spelling for t in cursor.get_tokens()][1:]
    elif cursor.kind in (CursorKind.MACRO_DEFINITION, CursorKind.MACRO_INSTANTIATION,
                         CursorKind.INCLUSION_DIRECTIVE):
        return None  # include guards
    elif cursor.kind == CursorKind.STRUCT_DECL and not cursor.is_definition():
        return None  # a struct that only the library knows
    if not kind:
        raise Wrong(f"{name}: cannot describe a {cursor.kind.name}: teach generate/headers.py")
    return Item(kind, name, cursor.extent.start.line, cursor.extent.end.line, cursor, tokens,
                bool(function_like))


def typedef_kind(cursor):
    declaration = struct_of(cursor)
    if declaration is None:
        pointee = cursor.underlying_typedef_type.get_pointee()
        if pointee.kind in (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO):
            return "callback"
        return None
    if declaration.kind == CursorKind.ENUM_DECL:
        return "enum"
    return "struct" if declaration.is_definition() else "handle"


def integers(include, text, headers):
    """Values of the macros that the compiler accepts as integers."""
    names = [i.name for h in headers for i in h.items
             if i.kind == "macro" and i.tokens and not i.function_like]
    lines = [f"enum {{ value_of_{name} = ({name}) }};" for name in names]
    first = text.count("\n") + 1
    unit = parse(include, text + "\n".join(lines) + "\n")
    refused = {d.location.line - first for d in unit.diagnostics}
    accepted = {f"value_of_{n}": n for i, n in enumerate(names) if i not in refused}
    return {accepted[c.spelling]: c.enum_value for e in unit.cursor.get_children()
            if e.kind == CursorKind.ENUM_DECL for c in e.get_children() if c.spelling in accepted}
