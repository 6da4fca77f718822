#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The part of bench/tune that decides. It reads rows and logs in --work, and writes tuning files.

  candidates  after the first run: can a file be made of this? Writes candidate-1.toml, ...; prints how many
  decide      takes the fastest candidate of each size; writes tuning.toml
  finish      takes back what made hier slower; writes --out; prints what was found
"""
import argparse
import csv
import math
import os
import re
import statistics
import sys

GAIN = 0.97  # a candidate that saves less than 3 % does not count
EAGER = 32 << 10  # the default of coll_hier_eager_bytes
LEAST_CHUNK = 32 << 10
MOST_CHUNKS = 16
SMALL = 64 << 10  # the fallback module may serve blocks below this


def refuse(text):
    print(f"bench/tune: {text}", file=sys.stderr)
    sys.exit(2)


def text_of_bytes(count):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def text_of_choice(choice):
    if "publish" in choice:
        return "published" if choice["publish"] else "to each rank"
    words = [choice["route"]]
    if choice.get("chunks", 1) > 1:
        words.append(f"{choice['chunks']} chunks")
    if choice.get("eager"):
        words.append("eager")
    return ", ".join(words)


class Rows:
    """Median times in us of the runs so far, by label and size."""

    def __init__(self, path):
        self.times = {}
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                key = row["label"], int(row["bytes_per_rank"])
                self.times.setdefault(key, []).append(float(row["median_us"]))
                is_hier = row["label"] == "model" or row["label"].startswith("candidate")
                if is_hier and row["served_by_hier"] in ("", "-", "0"):
                    refuse(f"hier did not serve {text_of_bytes(key[1])} a rank: leave this size out")

    def time(self, label, size):
        return statistics.median(self.times[label, size])

    def sizes(self, label):
        return sorted(size for name, size in self.times if name == label)

    def total(self, label, sizes):
        """The logarithm of the product of the times, so that each size counts alike."""
        return sum(math.log(self.time(label, size)) for size in sizes)


class Model:
    """What hier said of itself without a tuning file."""

    def __init__(self, path):
        with open(path, errors="replace") as file:
            self.text = file.read()
        machine = re.search(r'machine = \{ cpu = "(.*)", cores = (\d+)(?:, gpu = "(.*)")? \}', self.text)
        if machine is None:
            refuse("hier did not say which machine this is: is it in the build tree?")
        self.machine = {"cpu": machine.group(1), "cores": int(machine.group(2))}
        if machine.group(3):
            self.machine["gpu"] = machine.group(3)
        transports = re.search(r"UCX (\S+) on .* between nodes", self.text)
        self.network = "tcp" if transports and "tcp" in transports.group(1) else "rdma"
        self.memory = "device" if "copy engines at" in self.text else "host"
        devices = re.search(r"(\d+) network devices? a node", self.text)
        self.devices = int(devices.group(1)) if devices else 1
        self.choices, self.expected = {}, {}
        line = re.compile(r": (\d+) bytes a rank: (.*); expected ([0-9.e+-]+) (us|ms)")
        for size, how, time, unit in line.findall(self.text):
            self.choices[int(size)] = self.choice(int(size), how)
            self.expected[int(size)] = float(time) * (1000 if unit == "ms" else 1)

    @staticmethod
    def choice(size, how):
        chunk = re.search(r"chunks of (\d+) bytes", how)
        if chunk is None:
            return {"publish": how.startswith(("published", "lent"))}
        route = {"direct puts": "direct"}.get(how.split(",")[0], how.split(",")[0])
        choice = {"route": route}
        if route != "bundles":
            choice["chunks"] = -(-size // int(chunk.group(1)))
        if size <= EAGER:
            choice["eager"] = ", eager" in how
        return choice


def candidates_of(size, nodes, ranks_per_node):
    if nodes == 1:
        return [{"publish": True}, {"publish": False}] if ranks_per_node > 1 else []
    routes = ["direct"] + (["ring"] if nodes > 2 else [])
    some = []
    if size <= EAGER:
        for eager in (True, False):
            some += [{"route": route, "chunks": 1, "eager": eager} for route in routes]
            if ranks_per_node > 1:
                some.append({"route": "bundles", "eager": eager})
        return some
    chunks = 1
    while chunks <= MOST_CHUNKS and (chunks == 1 or size // chunks >= LEAST_CHUNK):
        some += [{"route": route, "chunks": chunks} for route in routes]
        chunks *= 2
    if ranks_per_node > 1:
        some.append({"route": "bundles"})
    return some


def value(it):
    return {True: "true", False: "false"}.get(it) if isinstance(it, bool) else f'"{it}"' if isinstance(it, str) else str(it)


def ends_of(sizes):
    """Each size is measured for all up to half of the way to the next one, by factors."""
    return {size: math.isqrt(size * larger) for size, larger in zip(sizes, sizes[1:] + [4 * sizes[-1]])}


def layout_text(layout, sizes):
    """`sizes`: up_to and the keys."""
    lines = ["[[layout]]"] + [f"{key} = {value(it)}" for key, it in layout.items()] + ["sizes = ["]
    for up_to, keys in sorted(sizes.items()):
        lines.append("    { " + ", ".join(f"{key} = {value(it)}" for key, it in {"up_to": up_to, **keys}.items()) + " },")
    return "\n".join(lines + ["]", ""])


def write(path, model, rates, layouts):
    with open(path + ".new", "w") as file:
        file.write("# Written by bench/tune. coll_hier_tuning_file reads it.\nversion = 1\n")
        file.write("machine = { " + ", ".join(f"{key} = {value(it)}" for key, it in model.machine.items()) + " }\n")
        if rates:
            file.write("rates = { " + ", ".join(f"{key} = {it:.6g}" for key, it in rates.items()) + " } # GB/s\n")
        for layout in layouts:
            file.write("\n" + layout)
    os.replace(path + ".new", path)


def read_file(path):
    try:
        import tomllib
    except ImportError:
        refuse(f"{path} is there already, and Python older than 3.11 cannot add to it: name another file with --out")
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        refuse(f"{path}: {error}")


class Tuner:
    def __init__(self, options):
        self.options = options
        self.ranks = options.nodes * options.ranks_per_node
        self.model = Model(f"{options.work}/model.log")
        self.layout = {
            "collective": "allgather",
            "nodes": options.nodes,
            "ranks_per_node": options.ranks_per_node,
            "memory": options.memory,
        }
        if options.nodes > 1:
            self.layout["network"] = self.model.network
        if options.virtual:
            self.layout["virtual"] = True

    def work(self, name):
        return f"{self.options.work}/{name}"

    def text_of(self, choices):
        ends = ends_of(sorted(choices))
        return layout_text(self.layout, {ends[size]: choice for size, choice in choices.items()})

    def candidates_of(self, size):
        return candidates_of(size, self.options.nodes, self.options.ranks_per_node)

    def candidates(self):
        self.old_file()
        if self.model.memory != self.options.memory:
            refuse(f"hier takes these ranks for users of {self.model.memory} memory: give --memory {self.model.memory}"
                   " (or coll_hier_gpu none)")
        sizes = Rows(self.work("rows.csv")).sizes("the first run")
        for size in sizes:
            if size not in self.model.choices:
                refuse(f"hier did not serve {text_of_bytes(size)} a rank; its lines with coll_hier_verbose 1 say why")
        most = max(len(self.candidates_of(size)) for size in sizes)
        for i in range(most):
            choices = {}
            for size in sizes:
                some = self.candidates_of(size)
                choices[size] = some[i] if i < len(some) else self.model.choices[size]
            write(self.work(f"candidate-{i + 1}.toml"), self.model, {}, [self.text_of(choices)])
        print(most)

    def rates(self, rows):
        rates = {}
        if os.path.exists(self.work("link")):
            with open(self.work("link")) as file:
                rates["tcp_rate"] = float(file.read().split()[2]) / 1000 / self.model.devices
        for size in rows.sizes("copies"):
            peers = self.options.ranks_per_node - 1
            key = "engine_rate" if self.options.memory == "device" else "core_rate"
            rates[key] = peers * size / rows.time("copies", size) / 1000
        return rates

    def choose(self, rows):
        """The choice of each size, and its time."""
        chosen = {}
        for size in rows.sizes("model"):
            best, choice = rows.time("model", size), self.model.choices[size]
            for i, other in enumerate(self.candidates_of(size)):
                time = rows.time(f"candidate-{i + 1}", size)
                if time < best * (GAIN if choice is self.model.choices[size] else 1):
                    best, choice = time, other
            chosen[size] = choice, best
        return chosen

    def small_sizes(self, chosen):
        return [size for size in sorted(chosen) if size <= SMALL]

    def least_bytes(self, rows, chosen):
        """Of all ranks together. The fallback module serves less: so many of the small sizes that all of them together
        take the least time."""
        sizes, ends = self.small_sizes(chosen), ends_of(sorted(chosen))
        least, saved, most = 0, 0.0, -math.log(GAIN)
        for size in sizes:
            saved += math.log(chosen[size][1] / rows.time("fallback", size))
            if saved > most:
                least, most = (ends[size] + 1) * self.ranks, saved
        return least

    def decide(self):
        rows = Rows(self.work("rows.csv"))
        chosen = self.choose(rows)
        self.layout["min_bytes"] = self.least_bytes(rows, chosen)
        choices = {size: choice for size, (choice, _) in chosen.items()}
        write(self.work("tuning.toml"), self.model, self.rates(rows), [self.text_of(choices)])

    def finish(self):
        rows = Rows(self.work("rows.csv"))
        chosen = self.choose(rows)
        least = self.layout["min_bytes"] = self.least_bytes(rows, chosen)
        choices = {}
        print(f"{'bytes/rank':>10} {'the model chooses':<24} {'us':>9}  {'fastest':<24} {'us':>9} {'fallback us':>12}"
              f" {'without us':>11} {'with us':>9}")
        for size, (choice, best) in sorted(chosen.items()):
            model, note = self.model.choices[size], ""
            without, tuned = rows.time("without", size), rows.time("with", size)
            choices[size] = choice
            if tuned > without / GAIN and choice != model and size * self.ranks >= least:
                choices[size], note = model, "  slower when tried again: as the model chose"
            print(f"{text_of_bytes(size):>10} {text_of_choice(model):<24} {rows.time('model', size):9.1f}  "
                  f"{text_of_choice(choice):<24} {best:9.1f} {rows.time('fallback', size):12.1f} "
                  f"{without:11.1f} {tuned:9.1f}{note}")
        rates = self.rates(rows)
        print()
        for key, rate in rates.items():
            print(f"{key} {rate:.4g} GB/s")
        small = self.small_sizes(chosen)
        if rows.total("with", small) > rows.total("without", small) - len(small) * math.log(GAIN):
            del self.layout["min_bytes"]
            print("which small sizes the fallback module serves is left to the model: with the file they were slower")
        else:
            print(f"the fallback module serves less than {least} bytes in all" if least else "hier serves every size")
        self.print_differences(rows)
        self.save(rates, choices)

    def print_differences(self, rows):
        wrong = []
        for size in rows.sizes("model"):
            expected, measured = self.model.expected[size], rows.time("model", size)
            if abs(expected / measured - 1) > 0.15:
                wrong.append(f"  {text_of_bytes(size):>8}: expected {expected:.4g} us, measured {measured:.4g} us")
        if wrong:
            print("The cost model is more than 15 % off at:")
            print("\n".join(wrong))

    def old_file(self):
        """The file to which the layout is added; {}: there is none."""
        out = self.options.out
        if not os.path.exists(out):
            return {}
        old = read_file(out)
        machine, here = old.get("machine", {}), self.model.machine
        known = ["cpu", "cores"] + (["gpu"] if "gpu" in machine and "gpu" in here else [])
        if any(machine.get(key) != here[key] for key in known):
            refuse(f"{out} is of another machine: name another file with --out")
        here.update(machine)  # a run in host memory does not know the GPU
        return old

    def save(self, rates, choices):
        old = self.old_file()
        keys = ("collective", "nodes", "ranks_per_node", "memory", "network", "virtual")
        layouts = [self.text_of(choices)]
        for layout in old.get("layout", []):
            sizes = {size.pop("up_to"): size for size in layout.pop("sizes", [])}
            if any(layout.get(key) != self.layout.get(key) for key in keys):
                layouts.append(layout_text(layout, sizes))
        write(self.options.out, self.model, {**old.get("rates", {}), **rates}, layouts)
        print(f"written to {self.options.out}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["candidates", "decide", "finish"])
    parser.add_argument("--work", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--ranks-per-node", type=int, required=True)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--virtual", action="store_true")
    options = parser.parse_args()
    getattr(Tuner(options), options.what)()


main()
