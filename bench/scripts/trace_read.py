# SPDX-License-Identifier: BSD-3-Clause
"""Reads the traces of all ranks of one call and puts them on one time axis, in ns from the first rank's entry."""
import csv

COLUMNS = "op kind level peer from to count offset bytes runnable_ns started_ns ended_ns".split()


AWAITS_PEER = ("await_announced", "await_entered")  # these operations wait until a peer enters the call


class TraceError(Exception):
    pass


class Op:
    def __init__(self, row, shift):
        def time(column):
            return int(row[column]) + shift if row[column] else None

        self.kind, self.level = row["kind"], row["level"]
        self.peer, self.count = int(row["peer"]), int(row["count"])
        self.offset, self.bytes = int(row["offset"]), int(row["bytes"])
        self.runnable, self.started, self.ended = map(time, ("runnable_ns", "started_ns", "ended_ns"))
        self.landed = self.ended  # of a rail put: when its receiver saw it, if known
        self.told = self.ended  # of a wait for an announcement: when the peer made the announcement, if known

    @property
    def is_over(self):
        return self.started is not None and self.ended is not None


class Rank:
    def __init__(self, path, header, rows):
        self.path, self.header, self.rows, self.ops = path, header, rows, []
        self.rank, self.node, self.local = (int(header[k]) for k in ("rank", "node", "local"))
        self.bytes = int(header["bytes_per_rank"])

    def place(self, use_time_of_day):
        offset = int(self.header["realtime_offset_ns"]) if use_time_of_day else 0
        self.begin = int(self.header["begin_ns"]) + offset
        self.end = int(self.header["end_ns"]) + offset

    def shift(self, origin):
        self.begin, self.end = self.begin - origin, self.end - origin
        self.ops = [Op(row, self.begin) for row in self.rows]

    def owns(self, op):
        return op.offset // self.bytes == self.rank


class Call:
    def __init__(self, ranks):
        self.ranks = sorted(ranks, key=lambda r: r.rank)
        self.header = self.ranks[0].header
        self.is_aligned_by_day = len({r.header["clock"] for r in ranks}) > 1
        for rank in ranks:
            rank.place(self.is_aligned_by_day)
        origin = min(r.begin for r in ranks)
        for rank in ranks:
            rank.shift(origin)
        self.total = max(1, max(r.end for r in ranks))
        self.match()

    def match(self):
        """Sets `landed` and `told`. A rail put has landed when the receiver's wait for its number ends."""
        told = {(r.rank, op.peer): op.started for r in self.ranks for op in r.ops
                if op.kind == "announce" and op.level == "rail" and op.is_over}
        seen = {(r.rank, op.peer, op.count): op.ended for r in self.ranks for op in r.ops
                if op.kind == "await_data" and op.level == "rail" and op.ended is not None}
        for rank in self.ranks:
            for op in rank.ops:
                if op.kind == "put" and op.level == "rail" and op.is_over:
                    op.landed = max(op.ended, seen.get((op.peer, rank.rank, op.count), op.ended))
                if op.kind in AWAITS_PEER and op.level == "rail" and op.is_over:
                    op.told = min(op.ended, max(op.started, told.get((op.peer, rank.rank), op.ended)))

    def title(self):
        h = self.header
        nodes = h["ranks_on_nodes"].split()
        there = "" if len(self.ranks) == int(h["ranks"]) else f", traces of {len(self.ranks)} alone"
        return (f"Allgather: {h['ranks']} ranks on {len(nodes)} node{'s' if len(nodes) > 1 else ''} "
                f"({','.join(nodes)}){there}, {bytes_text(int(h['bytes_per_rank']))} a rank, "
                f"{self.total / 1000:.0f} us")

    def subtitle(self):
        h = self.header
        eager = ", eager" if h.get("eager") == "1" else ""
        network = f"; {h['route']} over {h['inter']}, depth {h['depth']}{eager}" if h["inter"] else ""
        node = h["intra"] + (", each block once for all of the node" if h.get("publish") == "1" else "")
        clock = "; hosts aligned by their time of day" if self.is_aligned_by_day else ""
        return (f"{h['communicator']}, call {h['call']}: {h['status']}; chunks of "
                f"{bytes_text(int(h['chunk_bytes']))}; {node}{network}; {h['by']}{clock}")


def bytes_text(number):
    for unit in ("B", "KiB", "MiB"):
        if number < 1024 or number % 1024:
            return f"{number} {unit}"
        number //= 1024
    return f"{number} GiB"


def read_rank(path):
    header = {}
    with open(path, encoding="utf-8", newline="") as file:
        for line in file:
            if not line.startswith("# "):
                break
            key, _, value = line[2:].rstrip("\n").partition(",")
            header[key] = value
        else:
            raise TraceError(f"{path}: no operations: was it written to its end?")
        if header.get("hier trace") != "1":
            raise TraceError(f"{path}: not a trace of coll/hier that this program knows")
        if line.strip().split(",") != COLUMNS:
            raise TraceError(f"{path}: the columns are not {','.join(COLUMNS)}")
        rest = file.read()
    rows = list(csv.DictReader(rest.splitlines(), COLUMNS))
    if not rest.endswith("\n") or len(rows) != int(header.get("operations", len(rows))):
        raise TraceError(f"{path}: cut short: was it written to its end?")
    try:
        rank = Rank(path, header, rows)
        for row in rows:
            Op(row, 0)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path}: damaged: {error!r}") from error
    return rank


def read_call(paths):
    ranks = [read_rank(path) for path in paths]
    first = ranks[0]
    for rank in ranks[1:]:
        for key in ("communicator", "call", "ranks", "bytes_per_rank"):
            if rank.header[key] != first.header[key]:
                raise TraceError(f"{first.path} and {rank.path} are not of one call: {key} is "
                                 f"{first.header[key]} and {rank.header[key]}")
    twice = {r.rank for r in ranks if sum(o.rank == r.rank for o in ranks) > 1}
    if twice:
        raise TraceError(f"more than one trace of rank {min(twice)}")
    return Call(ranks)
