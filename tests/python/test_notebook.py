#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/notebook/training.ipynb: its cells in order with what they show, and the whole
notebook in Jupyter. The latter is skipped without nbclient, ipykernel and matplotlib."""
import ast
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook" / "training.ipynb"
PACKAGES = ["nbclient", "ipykernel", "matplotlib"]
JUPYTER = """
import nbclient, nbformat, sys
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, "run.ipynb")
"""


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(cell, names):
    """Runs a cell. Returns the value of its last line if that is an expression."""
    tree, file = ast.parse("".join(cell["source"])), f"training.ipynb, {cell['id']}"
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names) if last else None


class Notebook(unittest.TestCase):
    def setUp(self):
        self.notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_is_clean(self):
        for cell in code_cells(self.notebook):
            self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), cell["id"])
        for cell in self.notebook["cells"]:
            for line in cell["source"]:
                self.assertLessEqual(len(line.rstrip("\n")), 100, line)

    def test_cells(self):
        names, printed, pages = {"__name__": "__main__"}, io.StringIO(), {}
        with contextlib.redirect_stdout(printed):
            for cell in code_cells(self.notebook):
                if "needs-matplotlib" in cell["metadata"].get("tags", []) and \
                        not importlib.util.find_spec("matplotlib"):
                    print("the plot is left out, there is no matplotlib", file=sys.stderr)
                    continue
                value = run_cell(cell, names)
                if hasattr(value, "_repr_html_"):
                    pages[cell["id"]] = value._repr_html_()
        for page in pages.values():  # well-formed, as a notebook needs it
            xml.etree.ElementTree.fromstring(f"<div>{page}</div>")
        self.assertIn("<polyline", pages["training"])
        self.assertIn("val/accuracy", pages["training"])
        self.assertIn("training.ipynb", pages["step"])
        self.assertGreater(names["trainer"].values["val/accuracy"], 0.95)
        self.assertIn("are wrong", printed.getvalue())

    def test_jupyter(self):
        missing = [name for name in PACKAGES if not importlib.util.find_spec(name)]
        if missing:
            self.skipTest(f"there is no {', '.join(missing)}")
        done = subprocess.run([sys.executable, "-c", JUPYTER, NOTEBOOK], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(Path("run.ipynb").read_text(encoding="utf-8"))
        shown = {cell["id"]: {kind for out in cell["outputs"] for kind in out.get("data", ())}
                 for cell in code_cells(run)}
        self.assertIn("text/html", shown["training"])
        self.assertIn("text/html", shown["step"])
        self.assertIn("image/png", shown["curve"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
