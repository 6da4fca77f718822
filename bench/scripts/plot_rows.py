# SPDX-License-Identifier: BSD-3-Clause
"""Reads the bench's CSV rows and turns them into points: the median of the rounds, and how far the rounds differ."""
import collections
import csv

from plot_style import ordered, peer_of

# The columns of each view, besides the size. A file gets the first view of which it has all columns.
COLUMNS = {
    "overlap": ("exposed_percent", "by"),
    "levels": ("together_us", "network_us", "links_us", "layout"),
    "time": (),
    "ratio": (),
}
# Rows in one panel must be equal in these columns.
ALIKE = ("nodes", "ranks", "layout", "memory", "in_place", "fresh", "buffers", "gemm_size")
# What older rows mean that lack such a column.
OLDER = {"fresh": "no", "buffers": "1"}

Table = collections.namedtuple("Table", "path columns rows")
Point = collections.namedtuple("Point", "size middle low high")
# `spread` says what the bars show: "rounds", "p99", or nothing. `bound`: {size: us}.
Panel = collections.namedtuple("Panel", "name rows by series bound spread rounds uneven")


class PlotError(Exception):
    """One line for the user."""


def read_rows(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if not reader.fieldnames:
                raise PlotError(f"{path}: the file is empty")
            rows = []
            for row in reader:
                if None in row or None in row.values():
                    raise PlotError(f"{path}:{reader.line_num}: not as many fields as the header has")
                row["at"] = f"{path}:{reader.line_num}"
                rows.append(row)
    except OSError as error:
        raise PlotError(f"{path}: {error.strerror}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise PlotError(f"{path}: not a CSV file ({error})")
    if not rows:
        raise PlotError(f"{path}: has a header and no rows")
    return Table(path, reader.fieldnames, rows)


def view_of(table):
    return next(view for view, needed in COLUMNS.items() if set(needed) <= set(table.columns))


def select(tables, view, options):
    """The rows of all tables that fulfil every --where."""
    needed = list(COLUMNS[view]) or [options.time]
    for table in tables:
        for column in ["ranks", "bytes_per_rank"] + needed + ([options.panels] if options.panels else []):
            if column not in table.columns:
                raise PlotError(f"{table.path}: no column {column}, which --view {view} needs")
    rows = [row for table in tables for row in table.rows]
    for condition in options.where:
        column, equals, values = condition.partition("=")
        if not equals or any(column not in row for row in rows):
            raise PlotError(f"--where {condition}: not COLUMN=VALUE with a column of these files")
        rows = [row for row in rows if row[column] in values.split(",")]
        if not rows:
            raise PlotError(f"--where {condition}: no row is left")
    return rows


def number(row, column, above=None):
    try:
        value = float(row[column])
    except ValueError:
        value = None
    if value is None or value != value or (above is not None and value <= above):
        raise PlotError(f"{row['at']}: {column} '{row[column]}' is not a number that can be drawn")
    return value


def median(values):
    """The median by nearest rank, as in the bench's tables."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


def size_of(row, by):
    size = number(row, "bytes_per_rank", 0)
    return size * number(row, "ranks", 0) if by == "total" else size


def figures(rows, by, column, above):
    """{peer: {size: its rows in the order of the rounds}}; rows without a figure are left out."""
    out = {}
    for row in rows:
        if row[column] != "":
            number(row, column, above)
            out.setdefault(peer_of(row), {}).setdefault(size_of(row, by), []).append(row)
    return {peer: out[peer] for peer in ordered(out)}


def bounds(rows, by):
    """{size: us} by the fastest link of all rounds. A disturbance makes a link slower, never faster."""
    known = [row for row in rows if row.get("bound_us")]
    rates = {row["at"]: number(row, "link_bytes_per_second", 0) for row in known if row.get("link_bytes_per_second")}
    out = {}
    for row in known:
        slower = max(rates.values()) / rates[row["at"]] if row["at"] in rates else 1
        out.setdefault(size_of(row, by), []).append(number(row, "bound_us", 0) / slower)
    return {size: median(values) for size, values in sorted(out.items())}


def spread_of(sizes, column):
    lists = [rows for peer in sizes.values() for rows in peer.values()]
    if any(len(rows) > 1 for rows in lists):
        return "rounds"
    return "p99" if column == "median_us" and all(row.get("p99_us") for rows in lists for row in rows) else ""


def points(sizes, column, spread):
    out = []
    for size, rows in sorted(sizes.items()):
        values = [number(row, column) for row in rows]
        high = number(rows[0], "p99_us", 0) if spread == "p99" else max(values)
        out.append(Point(size, median(values), min(values), high))
    return out


def ratios(sizes, hier, column):
    """The quotient of the medians. Its bar spans the rounds, each divided by hier's time of the same round."""
    out = []
    for size in sorted(set(sizes) & set(hier)):
        theirs, ours = ([number(row, column) for row in of[size]] for of in (sizes, hier))
        middle = median(theirs) / median(ours)
        each = [a / b for a, b in zip(theirs, ours)] if len(theirs) == len(ours) else [middle]
        out.append(Point(size, middle, min(each + [middle]), max(each + [middle])))
    return out


def panel(name, rows, view, options):
    for column in ALIKE if view != "levels" else ("memory", "in_place"):
        told = (row.get(column, OLDER.get(column)) for row in rows)
        values = list(dict.fromkeys(value for value in told if value is not None))
        if len(values) > 1:
            raise PlotError(f"the rows differ in {column} ({', '.join(values)}): choose with --where {column}=VALUE")
    device = all(row.get("memory", "device") == "device" for row in rows)
    by = options.by or ("total" if device and view != "levels" else "rank")
    column = {"overlap": "exposed_percent", "levels": "together_us"}.get(view, options.time)
    sizes = figures(rows, by, column, None if view == "overlap" else 0)
    if not sizes:
        raise PlotError(f"no row has a figure in the column {column}")
    all_sizes = dict(sizes)
    spread = spread_of(sizes, column)
    if view == "ratio":
        hier = sizes.pop("hier", None)
        if not hier or not sizes:
            raise PlotError("a ratio needs rows of hier and of a peer")
        spread = "" if spread == "p99" else spread
        series = {peer: ratios(of, hier, column) for peer, of in sizes.items()}
    else:
        series = {peer: points(of, column, spread) for peer, of in sizes.items()}
    rounds = {len(some) for of in all_sizes.values() for some in of.values()}
    return Panel(name, rows, by, series, bounds(rows, by) if column == "median_us" else {}, spread,
                 max(rounds), len(rounds) > 1)


def panels_of(rows, view, options):
    if not options.panels:
        return [panel("", rows, view, options)]
    values = dict.fromkeys(row[options.panels] for row in rows)
    return [panel(f"{options.panels} {value}", [row for row in rows if row[options.panels] == value], view, options)
            for value in values]
