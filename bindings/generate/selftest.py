# SPDX-License-Identifier: Apache-2.0
"""Tests the description with small headers: right ones are described, wrong ones refused."""
import tempfile
from pathlib import Path

from .describe import describe
from .wrong import Wrong

BASE = """/* SPDX-License-Identifier: Apache-2.0
 *
 * A header. All functions are Local.
 */
#include <stddef.h>
#include <stdint.h>
#define CTN_SIZE (2 * 4)
#define CTN_HERE ""
typedef enum { CTN_OK = 0, CTN_EARG = -2 } ctn_status;
typedef struct ctn_tensor ctn_tensor;
typedef struct ctn_box ctn_box;
typedef struct {
    size_t struct_size;
    int64_t pad[CTN_SIZE], width; /* width 0: 3; pad 0: none */
} ctn_box_opt;
"""
RIGHT = """
/* ---- boxes --- */

/* Make a box. Result: *b, owned. Errors: EARG (why). More text. */
ctn_status ctn_box_new(ctn_box **b, int ndim, const int64_t *dims, const ctn_box_opt *opt);
void ctn_box_free(ctn_box *b); /* NULL is allowed */
/* y = x + b. x (N), b (N) or NULL. Result: scope. */
ctn_tensor *ctn_shift_at(const char *at, ctn_tensor *x, ctn_tensor *b);
#define ctn_shift(...) ctn_shift_at(CTN_HERE, __VA_ARGS__)
"""
TABLE = '[handle.ctn_tensor]\nowner = "scope"\nreason = "scopes"\n'
WRONG = {
    "cannot decide the kind": "\n/* Reads. */\nint ctn_read(const void *what);\n",
    "no status CTN_EWHY": "\n/* Reads. Errors: EWHY. */\nint ctn_read(void);\n",
    "does not say `Result:`": "\n/* A box. */\nctn_box *ctn_find(void);\n",
    "must say from what": "\n/* A box. Result: borrowed. */\nctn_box *ctn_find(void);\n",
    "must say owned": "\n/* A box. Result: nice. */\nctn_box *ctn_find(void);\n",
    "calls no public function": "\n#define ctn_read(x) ctn_gone(x)\n",
    "no macro passes": "\n/* Reads. */\nint ctn_read_at(const char *at);\n",
    "cannot describe a UNION": "\nunion ctn_either { int i; };\n",
    "cannot describe a STRUCT": "\nstruct ctn_pair { int i, j; };\n",
}
WRONG_TABLES = {
    "function.ctn_gone does not exist": '[function.ctn_gone]\nx = {taken = true, reason = "x"}\n',
    "has no argument y": '[function.ctn_shift_at]\ny = {kind = "tensor", reason = "y"}\n',
    "there is no kind box": '[function.ctn_shift_at]\nx = {kind = "box", reason = "x"}\n',
    "has no reason": '[returns.ctn_box_new]\nkind = "enum"\n',
    "is none of": '[functions.ctn_box_new]\nreason = "x"\n',
}


def attempt(header, table):
    with tempfile.TemporaryDirectory() as folder:
        include = Path(folder) / "catena"
        include.mkdir()
        (include / "catena.h").write_text(header, encoding="utf-8")
        (Path(folder) / "table.toml").write_text(table, encoding="utf-8")
        return describe(folder, Path(folder) / "table.toml")


def refused(message, header, table):
    try:
        attempt(header, table)
    except Wrong as wrong:
        assert message in str(wrong), f"expected {message!r}, got: {wrong}"
        return
    raise AssertionError(f"expected {message!r}, but nothing was wrong")


def main():
    found = attempt(BASE + RIGHT, TABLE)
    new, free, shift = found["functions"]
    kinds = [[a["kind"] for a in f["arguments"]] for f in (new, free, shift)]
    assert kinds == [["out_handle", "count", "shape", "options"], ["handle"],
                     ["source_line", "tensor", "tensor"]], kinds
    assert new["result"]["free"] == "ctn_box_free" and new["errors"]["codes"] == ["EARG"], new
    assert new["description"] == ["Make a box. More text."] and new["section"] == "boxes", new
    assert [a.get("nullable") for a in shift["arguments"]] == [None, None, True], shift
    assert shift["macros"] == [{"name": "ctn_shift", "fills": {"at": "CTN_HERE"}}], shift
    fields = found["structs"][0]["fields"]
    assert [f.get("default") for f in fields] == [None, "none", "3"], fields
    assert found["constants"][0]["value"] == 8, found["constants"]
    for message, more in WRONG.items():
        refused(message, BASE + RIGHT + more, TABLE)
    for message, more in WRONG_TABLES.items():
        refused(message, BASE + RIGHT, TABLE + more)
    print(f"dev/interface: self-test: 1 right header described, {len(WRONG)} wrong ones and "
          f"{len(WRONG_TABLES)} wrong tables refused")
    return 0
