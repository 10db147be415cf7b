# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md, its plots and the results in README.md from the figures that
`dev/bench report` took."""
import datetime
import os
import re
import subprocess
from pathlib import Path

SECTIONS = {
    "mlp": (
        "A small network: MLP 784-1000-1000-10, batch 100, Adam",
        "*Bare oneDNN* (`bench/bare_mlp.c`) calls oneDNN directly and does nothing but "
        "the eight matrix products of the step and one pass of Adam. PyTorch runs compiled, "
        "with its fused Adam."),
    "start": (
        "Start-up",
        "Catena: from the start of the process to the end of its first training step. "
        "PyTorch: `import torch` alone."),
    "resnet50": (
        "A convolution network: ResNet-50, batch 16, 224 x 224",
        "Bare oneDNN (`bench/bare_resnet50.c`) runs every convolution and batch "
        "normalisation of the step in the layout it prefers, and nothing else: no residual "
        "sums, pooling, classifier or update. PyTorch is the fastest of its eager modes."),
    "elementwise": (
        "Chains of elementwise ops",
        "A chain of 1 to 64 cheap ops on 16 million floats, against one loop compiled for "
        "that chain."),
    "ops": (
        "Single ops on one thread",
        "CPU time of 160 ops with and without their gradients (`bench/ops.py` has their sizes), "
        "against PyTorch eager. Besides the median and the worst ratio, every op that takes more "
        "than twice as long as PyTorch's is listed; `dev/bench ops` prints all."),
    "loader": (
        "Reading photos",
        "JPEG photos of about 500 pixels to normalised random crops of 224 pixels. "
        "*Decoding alone* (`bench/decode_only.c`) decodes each photo at full size with "
        "libjpeg-turbo and does nothing else. The Pillow path is PyTorch's DataLoader with "
        "Pillow."),
    "allreduce": (
        "The sum over ranks",
        "25.6 million floats over four hosts with links of 1 Gbit/s (network namespaces on "
        "one machine), against what the links allow, headers included."),
    "overlap": (
        "Training on several ranks: ResNet-50, batch 8 per rank",
        "Two hosts of one core each (network namespaces), with links so slow that the "
        "exchange of the gradients takes 70 % as long as the kernels. *Exchange after "
        "backward* sums the gradients in large buckets once all are ready, the way Horovod "
        "does for a step whose tensors are fused. *One parameter at a time* is what the "
        "first ChainerMN did. *No exchange* is the bound. PyTorch is "
        "DistributedDataParallel over Gloo."),
}
HEAD = """# Performance

`dev/bench report` wrote this page. It runs every comparison that the machine allows. Take the
figures again on yours, with nothing else running:

```sh
python3 -m venv .venv && .venv/bin/pip install torch numpy pillow
dev/bench report
```

Catena and the program it is compared with run in alternation, and the best of each counts, because
machines drift. The *median ratio* is that of the single rounds. A *bar* is what the project
promises. `dev/bench PART` takes one part again.

| | |
|---|---|"""
OURS, OTHERS = "#2b6cb0", "#718096"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("`", "")


def svg(chart):
    """Horizontal bars; Catena's own in colour. Shorter is better in all of them."""
    left, width, row, top = 330, 330, 30, 54
    largest = max(chart["bars"].values())
    height = top + row * len(chart["bars"]) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" '
           f'viewBox="0 0 760 {height}" font-family="sans-serif" font-size="14">',
           f'<rect width="760" height="{height}" fill="#ffffff"/>',
           f'<text x="16" y="24" font-size="16" font-weight="bold">{escape(chart["title"])}</text>',
           f'<text x="16" y="42" fill="#4a5568" font-size="12">{escape(chart["unit"])}, '
           'shorter is better</text>']
    for i, (label, value) in enumerate(chart["bars"].items()):
        y = top + row * i
        length = max(1.0, width * value / largest)
        colour = OURS if label.startswith("Catena") else OTHERS
        out += [f'<text x="{left - 10}" y="{y + 19}" text-anchor="end">{escape(label)}</text>',
                f'<rect x="{left}" y="{y + 5}" width="{length:.1f}" height="20" fill="{colour}"/>',
                f'<text x="{left + length + 8:.1f}" y="{y + 19}">{figure(value)}</text>']
    return "\n".join(out + ["</svg>\n"])


def figure(value):
    if value is None:
        return ""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def first_match(pattern, text, otherwise="unknown"):
    found = re.search(pattern, text, re.M)
    return found.group(1).strip() if found else otherwise


def output(*command):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def cpu_flags():
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return set(first_match(r"^(?:flags|Features)\s*:(.*)$", cpu, "").split())


def has_bf16():
    return bool(cpu_flags() & {"avx512_bf16", "amx_bf16", "bf16"})


def machine():
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = cpu_flags()
    known = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx512_bf16": "BF16",
             "amx_tile": "AMX", "sve": "SVE"}
    sets = [name for flag, name in known.items() if flag in flags]
    meminfo = Path("/proc/meminfo").read_text(encoding="utf-8")
    memory = int(first_match(r"MemTotal:\s*(\d+)", meminfo, "0"))
    return [("CPU", f"{first_match(r'^model name.*?:(.*)$', cpu)} ({', '.join(sets)})"),
            ("Cores used", str(len(os.sched_getaffinity(0)))),
            ("Memory", f"{memory / 2**20:.0f} GiB")]


def versions(info, pythons, top):
    commit = output("git", "-C", top, "log", "-1", "--format=%h").strip() or "unknown"
    found = [("Catena", f"{info.get('version', 'unknown')}, commit {commit}"),
             ("oneDNN", info.get("build", {}).get("onednn", "unknown"))]
    for name, python in pythons.items():
        module = name.lower().replace("pytorch", "torch")
        show = f"import {module}; print({module}.__version__)"
        version = output(python, "-c", show) if python else ""
        found.append((name, version.strip() or "not installed, left out"))
    return found


def table(rows):
    lines = ["| figure | Catena | other | ratio | median ratio | bar |",
             "|---|---:|---:|---:|---:|---|"]
    for r in rows:
        bar = "" if r["bar"] is None else r["bar"] + (" (met)" if r["met"] else " (**not met**)")
        unit = f" {r['unit']}" if r["unit"] else ""
        other = figure(r["other"]) + unit if r["other"] is not None else ""
        cells = (r["figure"], figure(r["catena"]) + unit, other, figure(r["ratio"]),
                 figure(r["ratio_median"]), bar)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def headline(charts):
    """The table of README.md: the first of Catena's bars of each plot, and the others."""
    lines = ["| what | Catena | compared with |", "|---|---:|---|"]
    for chart in charts:
        ours = [v for label, v in chart["bars"].items() if label.startswith("Catena")]
        others = [f"{label} {figure(v)}" for label, v in chart["bars"].items()
                  if not label.startswith("Catena")]
        if ours and others:
            lines.append(f"| {chart['title']} | {figure(ours[0])} {chart['unit']} | "
                         f"{', '.join(others)} |")
    facts = dict(machine())
    return lines + ["", f"{facts['CPU']}, {facts['Cores used']} cores, "
                        f"{datetime.date.today().isoformat()}. Less is better."]


def update_readme(path, charts):
    begin, end = "<!-- results: dev/bench report -->\n", "<!-- end of results -->\n"
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    table = "\n".join(headline(charts)) + "\n"
    path.write_text(before + begin + table + end + after, encoding="utf-8")


def write(top, rows, charts, skipped, info, pythons):
    """docs/performance.md, docs/performance/*.svg and the table in README.md."""
    folder = top / "docs" / "performance"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    page = [HEAD]
    page += [f"| {a} | {b} |" for a, b in machine() + versions(info, pythons, top)]
    page += [f"| Date | {datetime.date.today().isoformat()} |", ""]
    for part, (title, words) in SECTIONS.items():
        own = [r for r in rows if r["part"] == part and not r.get("detail")]
        if not own:
            continue
        page += [f"## {title}", "", words, ""]
        for chart in (c for c in charts if c["part"] == part and len(c["bars"]) > 1):
            (folder / f"{chart['name']}.svg").write_text(svg(chart), encoding="utf-8")
            page += [f"![{chart['title']}](performance/{chart['name']}.svg)", ""]
        page += table(own) + ["", f"Rerun: `dev/bench {part}`.", ""]
    if skipped:
        page += ["## Left out on this machine", ""]
        page += [f"- {what}: {why}" for what, why in skipped] + [""]
    (top / "docs" / "performance.md").write_text("\n".join(page), encoding="utf-8")
    update_readme(top / "README.md", charts)
