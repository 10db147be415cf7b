# SPDX-License-Identifier: Apache-2.0
"""Spells declarations in C, as a user of the library writes or reads them."""
COLUMNS = 100


def declarator(kind, name, callback=None):
    """A type and a name: "const int64_t *dims"."""
    if callback:
        inner = ", ".join(declarator(a["type"], a["name"], a.get("callback"))
                          for a in callback["arguments"])
        return declarator(callback["returns"], f"(*{name})({inner})")
    return kind + name if kind.endswith("*") else f"{kind} {name}"


def function(entry, name):
    """The declaration of a function under this name, on one line."""
    given = ", ".join("..." if a["kind"] == "variadic" else
                      declarator(a["type"], a["name"], a.get("callback"))
                      for a in entry["arguments"])
    return f"{declarator(entry['returns']['type'], name)}({given or 'void'})"


def shown_names(item):
    """The names that users write."""
    if item["part"] == "enums" and not item["named"]:
        return [value["name"] for value in item["values"]]
    return [macro["name"] for macro in item.get("macros", [])] or [item["name"]]


def field_name(field):
    return field["name"] + (f"[{field['length']}]" if "length" in field else "")


def field_type(field):
    return declarator(field["type"], "", field.get("callback")).strip()


def declaration(item):
    """The lines that show an item; none for structs and enums, which are shown as tables."""
    part, name = item["part"], item["name"]
    note = f" /* {' '.join(item['note'])} */" if item.get("note") else ""
    if part == "functions":
        return calls(item, note)
    if part == "handles":
        return [f"typedef struct {name} {name};{note}"]
    if part == "callbacks":
        return wrapped(f"typedef {declarator('', name, item).strip()};{note}")
    if part == "constants":
        return [f"#define {name} {item['value']}{note}"]
    if part == "variables":
        return [f"extern {declarator(item['type'], name)};{note}"]
    if part == "macros":
        given = f"({', '.join(item['parameters'])})" if "parameters" in item else ""
        return [f"{name}{given}{note}"]
    return []


def calls(item, note):
    """One declaration for each macro of a function, or that of the function itself."""
    if not item.get("macros"):
        return wrapped(function(item, item["name"]) + ";" + note)
    out = []
    for macro in item["macros"]:
        left = [a for a in item["arguments"]
                if a["name"] not in macro["fills"] or "..." in macro["fills"][a["name"]]]
        out += wrapped(function({**item, "arguments": left}, macro["name"]) + ";" + note)
    return out


def wrapped(line):
    """A declaration in lines of at most 100 columns, aligned after its parenthesis."""
    if len(line) <= COLUMNS or "(" not in line:
        return [line]
    indent = " " * (line.index("(") + 1)
    out, current = [], ""
    for word in line.split(", "):
        if current and len(current) + len(word) + 3 > COLUMNS:
            out.append(current + ",")
            current = indent + word
        else:
            current = f"{current}, {word}" if current else word
    return [*out, current]
