#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/notebook/training.ipynb: its cells in order with what they show, and the whole
notebook in Jupyter. For Jupyter, nbclient, ipykernel and matplotlib are installed from PyPI in a
virtual environment of the build folder, if they are not there; otherwise that test is skipped."""
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


def python_with_jupyter():
    """A Python that has the packages, and the reason if there is none."""
    if all(importlib.util.find_spec(name) for name in PACKAGES):
        return sys.executable, None
    if "CATENA_BUILD" not in os.environ:
        return None, f"without CATENA_BUILD there is no place for {', '.join(PACKAGES)}"
    folder = Path(os.environ["CATENA_BUILD"]) / "jupyter"
    python = folder / "bin" / "python"
    commands = [[sys.executable, "-m", "venv", "--system-site-packages", folder],
                [python, "-m", "pip", "install", "--quiet", "--timeout", "10", "--retries", "0",
                 *PACKAGES]]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            why = (done.stderr + done.stdout).strip().splitlines()
            return None, f"cannot install {', '.join(PACKAGES)}: {' '.join(why[:2])}"
    return python, None


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
        python, why = python_with_jupyter()
        if not python:
            self.skipTest(why)
        done = subprocess.run([python, "-c", JUPYTER, NOTEBOOK], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(Path("run.ipynb").read_text(encoding="utf-8"))
        shown = {cell["id"]: {kind for out in cell["outputs"] for kind in out.get("data", ())}
                 for cell in code_cells(run)}
        self.assertIn("text/html", shown["training"])
        self.assertIn("text/html", shown["step"])
        self.assertIn("image/png", shown["curve"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
