# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: plans, and tables with curves."""
from __future__ import annotations

import html
from collections.abc import Sequence

from . import _core


class Plan:
    """The last plan that ran: its kernels with their layouts and source lines."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = self.text.splitlines() or [""]
        return (f"<details><summary>{html.escape(lines[0])}</summary>"
                f"<pre>{html.escape(chr(10).join(lines[1:]))}</pre></details>")


def plan() -> Plan:
    """The last plan of the current context, as text or, in a notebook, as a page."""
    return Plan(_core.current_context().plan())


def curve(values: Sequence[float], width: int = 240, height: int = 60) -> str:
    """A small curve as SVG; values that are not finite are left out."""
    points = [(i, v) for i, v in enumerate(values) if v == v and abs(v) != float("inf")]
    if len(points) < 2:
        return ""
    low, high = min(v for _, v in points), max(v for _, v in points)
    across, up = width / max(points[-1][0], 1), (height - 4) / ((high - low) or 1)
    path = " ".join(f"{i * across:.1f},{height - 2 - (v - low) * up:.1f}" for i, v in points)
    return (f'<svg width="{width}" height="{height}"><polyline points="{path}" fill="none" '
            'stroke="currentColor"/></svg>')


def table(columns: dict[str, list[float]]) -> str:
    """{name: values} as a table with one row per entry and a curve under each column."""
    rows = max((len(v) for v in columns.values()), default=0)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{v[i]:.4g}</td>" for v in columns.values()) + "</tr>"
                   for i in range(rows))
    curves = "".join(f"<td>{curve(v)}</td>" for v in columns.values())
    return (f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            f"<tfoot><tr>{curves}</tr></tfoot></table>")
