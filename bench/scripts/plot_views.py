# SPDX-License-Identifier: BSD-3-Clause
"""Draws panels as SVG: a title, a legend, the panels one below the other, and a line that explains the bars."""
import io
import math
import textwrap

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullFormatter, NullLocator

from plot_levels import draw_levels, level_names, levels_height
from plot_style import size_text, styles, time_text

# In inches and points. A telephone shows 7 inches at half their width, so no letter is smaller than 12 points.
WIDTH, LEFT, RIGHT, PANEL = 7, 0.92, 0.25, 3.4
TITLE, TEXT, SMALL = 15, 13, 12
# The same rows give the same bytes: no date, no random ids. Text stays text, in the reader's own fonts.
matplotlib.rcParams.update({
    "svg.hashsalt": "bench/plot", "svg.fonttype": "none", "font.size": TEXT, "axes.linewidth": 1.2,
    "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 1, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False,
})
# The name of the axis is above the panel, because turned text is hard to read.
AXES = {
    "time": "time of a call",
    "ratio": "time of the peer / time of hier",
    "overlap": "% of the allgather's time that shows",
    "levels": "% of the whole call's time",
}
PANEL_NAMES = {"in_place yes": "in place", "in_place no": "out of place"}


def default_title(panel, view):
    row = panel.rows[0]
    what = {"time": "Allgather", "ratio": "hier against its peers", "overlap": "Allgather under GEMMs",
            "levels": "Network and links alone, and the whole call"}[view]
    if view == "levels":
        return what
    where = {"": "", "1": " on one node"}.get(row.get("nodes", ""), f" on {row.get('nodes')} nodes")
    return f"{what}: {row['ranks']} ranks{where}" + (f", {row['memory']} memory" if row.get("memory") else "")


def caption(panels, view, note):
    panel = max(panels, key=lambda each: each.rounds)
    rounds = ("up to " if any(each.uneven for each in panels) else "") + str(panel.rounds)
    bars = {"rounds": f"Median of {rounds} rounds; bars from the lowest to the highest round.",
            "p99": "Median of one round; bars up to the 99th percentile.",
            "": "One figure a point; no spread known."}[panel.spread]
    better = {"time": "Lower is better.", "ratio": "Above 1: hier is faster.", "overlap": "Lower is better.",
              "levels": "Where the network alone takes about 100 %, the call hides the links."}[view]
    return " ".join(part for part in (bars, better, note) if part)


def size_axis(axes, panel):
    sizes = sorted({point.size for points in panel.series.values() for point in points})
    axes.set_xscale("log", base=2)
    span = sizes[-1] / sizes[0]
    axes.set_xlim(sizes[0] / max(span, 4) ** 0.04, sizes[-1] * max(span, 4) ** 0.04)
    # As many labels as fit; each takes a ninth of the axis.
    shown, left = [], None
    for size in reversed(sizes):
        if left is None or left / size >= max(span, 4) ** 0.12:
            shown.append(size)
            left = size
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))
    axes.xaxis.set_minor_locator(FixedLocator([size for size in sizes if size not in shown]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("bytes of all ranks together" if panel.by == "total" else "bytes of each rank")


def error_bars(points):
    """How far each bar reaches below and above its point. A point of a single figure has no bar."""
    if all(point.high <= point.low for point in points):
        return None
    return [[point.middle - point.low if point.high > point.low else math.nan for point in points],
            [point.high - point.middle if point.high > point.low else math.nan for point in points]]


def draw_lines(axes, panel, view, style):
    for z, (peer, points) in enumerate(reversed(list(panel.series.items()))):
        colour, mark = style[peer]
        sizes, middle = [p.size for p in points], [p.middle for p in points]
        bars = error_bars(points)
        drawn = axes.errorbar(sizes, middle, yerr=bars, color=colour, marker=mark,
                              markersize=8, linewidth=3.5 if peer == "hier" else 2.5, capsize=5, capthick=2,
                              elinewidth=2, zorder=3 + z)
        drawn.lines[0].set_gid("points of " + peer)
        if bars:
            drawn.lines[2][0].set_gid("bars of " + peer)
    if view == "ratio":
        axes.axhline(1, color=style["hier"][0], linewidth=3.5, zorder=2)
        ratio_axis(axes, panel)
        return
    if panel.bound:
        axes.plot(list(panel.bound), list(panel.bound.values()), color=style["bound"][0], linewidth=2.5,
                  linestyle=(0, (4, 2)), zorder=30, gid="points of bound")
    time_axis(axes)


def time_axis(axes):
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high / low < 2000 else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))


def ratio_axis(axes, panel):
    highest = max(point.high for points in panel.series.values() for point in points)
    lowest = min(point.low for points in panel.series.values() for point in points)
    axes.set_ylim(min(0.8, lowest - 0.1) if highest < 4 else 0, highest * 1.06)
    step = 0.2 if highest < 2.5 else 0.5 if highest < 4.5 else 1
    axes.yaxis.set_major_locator(MultipleLocator(step) if highest < 12 else MaxNLocator(8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))


def draw_bars(axes, panel, view, style):
    sizes = sorted({point.size for points in panel.series.values() for point in points})
    width = 0.84 / len(panel.series)
    for i, (peer, points) in enumerate(panel.series.items()):
        at = [sizes.index(p.size) + (i - (len(panel.series) - 1) / 2) * width for p in points]
        bars = error_bars(points)
        drawn = axes.bar(at, [p.middle for p in points], width * 0.92, color=style[peer][0],
                         yerr=bars, capsize=4, error_kw={"elinewidth": 2, "capthick": 2})
        for x, point, bar in zip(at, points, drawn):
            bar.set_gid(f"bar of {peer} at {size_text(point.size)}")
            # The figure is beyond the end of the error bar. If that is long, the figure is at the point itself.
            top = point.high if point.high - point.middle < 15 else point.middle
            axes.annotate(f"{point.middle:.0f}", (x, max(top, 0)), xytext=(0, 4), ha="center", fontsize=SMALL,
                          textcoords="offset points", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    axes.set_xticks(range(len(sizes)), [size_text(size) for size in sizes])
    axes.set_xlabel("bytes of all ranks together" if panel.by == "total" else "bytes of each rank")
    axes.set_ylim(min(0, axes.get_ylim()[0]), max(100, axes.get_ylim()[1]) * 1.08)
    axes.grid(axis="x", visible=False)


def handles(names, style, view):
    def handle(name):
        colour, mark = style[name]
        if view in ("overlap", "levels") and name != "bound":
            return Patch(color=colour, label=name)
        return Line2D([], [], color=colour, marker=mark or None, markersize=8, linewidth=3, label=name,
                      linestyle=(0, (4, 2)) if name == "bound" else "-")
    return [handle(name) for name in names]


def legend_columns(names):
    """The number of columns: as many as fit, but not more than the rows need. The legend fills column by column."""
    for columns in (4, 3, 2):
        rows = -(-len(names) // columns)
        parts = [names[i:i + rows] for i in range(0, len(names), rows)]
        if len(parts) == columns and sum(6 + max(map(len, part)) for part in parts) < 62:
            return columns
    return 1


def panel_text(panel, view):
    name = PANEL_NAMES.get(panel.name, panel.name)
    return (name + ": " if name else "") + AXES[view]


def draw(panels, view, options):
    names = level_names(panels) if view == "levels" else list(dict.fromkeys(n for p in panels for n in p.series))
    if view == "ratio":
        names.insert(0, "hier")
    elif view == "time" and any(panel.bound for panel in panels):
        names.append("bound")
    style = styles(names)
    title = textwrap.fill(options.title or default_title(panels[0], view), 53, break_on_hyphens=False)
    below = textwrap.fill(caption(panels, view, options.note), 72, break_on_hyphens=False)
    columns = legend_columns(names)
    # In inches from the top: title, legend, each panel with its text above and its axis below, caption.
    title_height = 0.15 + 0.25 * (title.count("\n") + 1)
    legend = 0.26 * -(-len(names) // columns) + 0.1
    heights = [levels_height(panel) if view == "levels" else PANEL for panel in panels]
    above, under, foot = 0.38, 0.65, 0.16 + 0.21 * (below.count("\n") + 1)
    height = title_height + legend + sum(heights) + len(panels) * (above + under) + foot
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    figure.text(0.02, 1 - 0.12 / height, title, fontsize=TITLE, fontweight="bold", va="top")
    figure.legend(handles=handles(names, style, view), loc="upper left", ncol=columns, frameon=False, fontsize=TEXT,
                  bbox_to_anchor=(0.015, 1 - title_height / height), borderaxespad=0, borderpad=0.2, handlelength=1.8,
                  columnspacing=1.4, labelspacing=0.35)
    figure.text(0.02, 0.1 / height, below, fontsize=SMALL, va="bottom", color="#333333", linespacing=1.25)
    y = height - title_height - legend
    left = LEFT + (0.75 if view == "levels" else 0)
    for panel, panel_height in zip(panels, heights):
        y -= above + panel_height
        axes = figure.add_axes([left / WIDTH, y / height, 1 - (left + RIGHT) / WIDTH, panel_height / height])
        y -= under
        {"overlap": draw_bars, "levels": draw_levels}.get(view, draw_lines)(axes, panel, view, style)
        if view in ("time", "ratio"):
            size_axis(axes, panel)
        axes.annotate(panel_text(panel, view), (0.02, 1), xycoords=("figure fraction", "axes fraction"), xytext=(0, 7),
                      textcoords="offset points", va="bottom", color="#333333",
                      fontweight="bold" if panel.name else "normal")
    out = io.StringIO()
    about = {"Date": None, "Creator": "bench/plot", "Title": title.replace("\n", " ")}
    figure.savefig(out, format="svg", metadata=about)
    return out.getvalue()
