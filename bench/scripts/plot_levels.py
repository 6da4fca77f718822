# SPDX-License-Identifier: BSD-3-Clause
"""Draws the levels alone beside the whole call: bars in parts of the whole call's time."""
from plot_rows import median, number
from plot_style import size_text, time_text

NAMES = {"together_us": "whole call", "network_us": "network alone", "links_us": "links alone"}


def level_names(panels):
    known = any(row.get("bound_us") for panel in panels for row in panel.rows)
    return list(NAMES.values()) + (["bound"] if known else [])


def groups(panel):
    """{name below the bars: its rows}. A name has the layout, the size, and the label if that says more."""
    out = {}
    for row in panel.rows:
        layout, _, order = row.get("label", "").rpartition(":")
        if not layout:
            layout, order = row["layout"], row.get("label", "")
        first = " ".join([layout] + ([order] if order not in ("block", "") else []))
        out.setdefault(first + "\n" + size_text(number(row, "bytes_per_rank", 0)), []).append(row)
    return out


def levels_height(panel):
    return 0.35 + 0.72 * len(groups(panel))


def draw_levels(axes, panel, _view, style):
    found = groups(panel)
    thick = 0.26
    fastest = max((number(row, "link_bytes_per_second", 0) for row in panel.rows if row.get("link_bytes_per_second")),
                  default=0)
    for at, (name, rows) in enumerate(found.items()):
        whole = median([number(row, "together_us", 0) for row in rows])
        for i, column in enumerate(NAMES):
            parts = [number(row, column) / number(row, "together_us", 0) * 100 for row in rows if row[column]]
            if not parts:
                continue
            middle = median(parts)
            bar, = axes.barh([at + (i - 1) * thick], [middle], thick * 0.92, color=style[NAMES[column]][0],
                             xerr=[[middle - min(parts)], [max(parts) - middle]] if min(parts) < max(parts) else None,
                             capsize=4, error_kw={"elinewidth": 2, "capthick": 2})
            bar.set_gid(f"bar of {NAMES[column]} at {' '.join(name.split())}")
        axes.annotate(time_text(whole), (0, at - thick), xytext=(5, 0), textcoords="offset points", color="white",
                      va="center_baseline", fontsize=12)
        bound = [number(row, "bound_us", 0) * number(row, "link_bytes_per_second", 0) / fastest
                 for row in rows if row.get("bound_us") and row.get("link_bytes_per_second")]
        if bound:
            axes.plot([median(bound) / whole * 100] * 2, [at - 1.5 * thick, at + 1.5 * thick], color=style["bound"][0],
                      linewidth=2.5, linestyle=(0, (3, 1)))
    axes.set_yticks(range(len(found)), list(found))
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlim(0, max(110, axes.get_xlim()[1]))
    axes.grid(axis="y", visible=False)
