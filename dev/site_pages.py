# SPDX-License-Identifier: Apache-2.0
"""Hook of mkdocs.yml: the pages of the site that do not lie in docs/.

- Pages of other folders: OUTSIDE.
- docs/reference, made from bindings/interface.json. The pages in the tree show C only; those of the
  site show the other languages too.
- options/: the options of each subcommand, made from the man pages of the release build, which the
  command prints from its option tables.
"""
import json
import shutil
import sys
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

TOP = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "bindings"), str(TOP / "dev")]
import site_options  # noqa: E402
from generate import files as generated_files, reference  # noqa: E402

MAN = TOP / "build" / "release" / "man"
# File in the tree: page of the site.
OUTSIDE = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md",
           "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
           "SECURITY.md": "security.md",
           **{name: name for name in ("bindings/README.md", "bindings/fortran/README.md",
                                      "bindings/python/README.md", "examples/insitu/README.md",
                                      "examples/own_model/README.md", "tests/cluster/README.md")}}


def generated():
    """{page of the site: text}"""
    if not MAN.is_dir():
        raise PluginError("build/release/man does not exist: build the release preset first, for "
                          "example with dev/check release-build")
    description = json.loads(generated_files.DESCRIPTION.read_text(encoding="utf-8"))
    made = {path.removeprefix("docs/"): text
            for path, text in reference.site(description).items()}
    return {**made, **site_options.pages(MAN)}


def on_config(config):
    """Expands reference/* and the like in the navigation."""
    config["made"] = generated()
    config.nav = expanded(config.nav, config["made"])
    return config


def expanded(nav, made):
    if isinstance(nav, dict):
        return {title: expanded(entry, made) for title, entry in nav.items()}
    if not isinstance(nav, list):
        return nav
    out = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            folder = entry[:-1]
            out += [page for page in made
                    if page.startswith(folder) and page != folder + "README.md"]
        else:
            out.append(expanded(entry, made))
    return out


def on_files(files, config):
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(TOP / name)))
    for page, text in config["made"].items():
        old = files.get_file_from_path(page)
        if old:
            files.remove(old)
        files.append(File.generated(config, page, content=text))
    return files


def on_post_build(config):
    """Removes what the theme brings for debuggers and for searching in other languages."""
    scripts = Path(config.site_dir) / "assets"
    shutil.rmtree(scripts / "javascripts" / "lunr")
    for file in scripts.rglob("*.map"):
        file.unlink()
