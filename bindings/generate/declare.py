# SPDX-License-Identifier: Apache-2.0
"""Describes single declarations: structs, enums, callbacks, handles, variables and macros. Each
function returns the part of the description that the entry belongs to and the entry.
"""
from clang.cindex import CursorKind, TypeKind

from . import words


def arguments(cursor):
    """The arguments of a function or a pointer to one: [{name, type}]; a pointer to a function
    among them also has {callback: {returns, arguments}}."""
    return [{"name": c.spelling, "type": c.type.spelling, **callback_of(c)}
            for c in cursor.get_children() if c.kind == CursorKind.PARM_DECL]


def callback_of(cursor):
    """{callback: ...} if the field or argument is a pointer to a function that has no name."""
    pointee = cursor.type.get_pointee()
    if cursor.type.kind == TypeKind.POINTER and pointee.kind == TypeKind.FUNCTIONPROTO:
        return {"callback": {"returns": pointee.get_result().spelling,
                             "arguments": arguments(cursor)}}
    return {}


def callback(item, said):
    pointee = item.cursor.underlying_typedef_type.get_pointee()
    return "callbacks", {"returns": pointee.get_result().spelling,
                         "arguments": arguments(item.cursor)}


def handle(item, said):
    return "handles", {}


def variable(item, said):
    return "variables", {"type": item.cursor.type.spelling}


def comments_inside(item):
    """Line of a declaration -> text of the comments above it and after it on the same line."""
    from_line = {}
    tokens = list(item.cursor.get_tokens())
    for before, token in zip([None, *tokens], tokens):
        if not token.spelling.startswith("/*"):
            continue
        first, last = token.extent.start.line, token.extent.end.line
        trailing = before and before.extent.end.line == first
        line = first if trailing else last + 1
        from_line[line] = from_line.get(line, []) + words.text_of(token.spelling)
    return from_line


def struct(item, said):
    c_type = item.cursor.underlying_typedef_type
    texts = comments_inside(item)
    fields = []
    for cursor in c_type.get_fields():
        comment = texts.get(cursor.extent.start.line, [])
        if cursor.extent.end.line != cursor.extent.start.line:
            comment = comment + texts.get(cursor.extent.end.line, [])
        fields.append(field(cursor, comment, c_type.get_offset(cursor.spelling) // 8,
                            said.comment_of_group()))
    kind = "options" if fields[0]["name"] == "struct_size" else "plain"
    return "structs", {"kind": kind, "size": c_type.get_size(), "fields": fields}


def field(cursor, comment, offset, about_struct):
    c_type = cursor.type
    entry = {"name": cursor.spelling, "type": c_type.spelling, "offset": offset}
    if c_type.kind == TypeKind.CONSTANTARRAY:
        entry.update(type=c_type.element_type.spelling, length=c_type.element_count)
    entry.update(callback_of(cursor))
    if comment:
        entry["comment"] = comment
    default = words.default(cursor.spelling, comment, about_struct)
    if default is not None:
        entry["default"] = default
    return entry


def table_texts(found):
    """Constant -> its text, from the macros CTN_..._TABLE(X), whose rows are X(name, ..., text)."""
    texts = {}
    for header in found:
        for item in header.items:
            if item.kind != "macro" or not item.name.endswith("_TABLE"):
                continue
            for token, name in zip(item.tokens, [*item.tokens[2:], "", ""]):
                if token == "X":
                    constant = name
                elif token.startswith('"'):
                    texts[constant] = [token.strip('"')]
    return texts


def enum(item, texts):
    c_type = item.cursor.underlying_typedef_type if item.cursor.kind == CursorKind.TYPEDEF_DECL \
        else item.cursor.type
    named = item.cursor.kind == CursorKind.TYPEDEF_DECL
    inside = comments_inside(item)
    values = []
    for cursor in c_type.get_declaration().get_children():
        if cursor.kind != CursorKind.ENUM_CONSTANT_DECL:
            continue
        value = {"name": cursor.spelling, "value": cursor.enum_value}
        comment = texts.get(cursor.spelling) or inside.get(cursor.extent.start.line)
        values.append({**value, **({"comment": comment} if comment else {})})
    return {"named": named, "values": values}


def called(tokens):
    """The function that the body of a macro calls."""
    rest = body(tokens)
    return rest[0] if len(rest) > 1 and rest[1] == "(" else None


def body(tokens):
    """The tokens of a macro after its parameters."""
    return tokens[tokens.index(")") + 1:] if tokens[:1] == ["("] else tokens


def split_arguments(tokens):
    """Arguments of the call that these tokens are, each as text."""
    result, depth = [""], 0
    for token in tokens[2:-1]:
        depth += (token in "({") - (token in ")}")
        if token == "," and depth == 0:
            result.append("")
        else:
            result[-1] += token
    return result


def macro_call(macro, function):
    """What a macro passes to a function by itself: {name, fills: {argument: text}}."""
    tokens = macro["tokens"]
    parameters = tokens[1:tokens.index(")")]
    fills = {}
    for argument, given in zip(function["arguments"], split_arguments(body(tokens))):
        if given == "__VA_ARGS__":
            break
        if given not in parameters:
            fills[argument["name"]] = given.replace("__VA_ARGS__", "...")
    return {"name": macro["name"], "fills": fills}


def helper(macro):
    """A macro that is not a function: its parameters and its comment."""
    entry = {k: v for k, v in macro.items() if k not in ("tokens", "function_like")}
    if macro["function_like"]:
        tokens = macro["tokens"]
        entry["parameters"] = [t for t in tokens[1:tokens.index(")")] if t != ","]
    return entry


def complete_free(function, free):
    """Names the function that frees an owned result, where the comment does not."""
    result = function.get("result", {})
    if result.get("lifetime") != "owned" or "free" in result:
        return
    for argument in [*function["arguments"], function["returns"]]:
        base = argument["type"].rstrip(" *")
        if argument["kind"] in ("out_handle", "out_list", "handle", "inout_handle") \
                and base in free:
            result["free"] = free[base]
            return
