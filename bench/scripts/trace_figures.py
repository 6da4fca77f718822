# SPDX-License-Identifier: BSD-3-Clause
"""How busy the levels were, and how well they overlapped."""


def union(intervals):
    out = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def length(intervals):
    return sum(end - start for start, end in intervals)


def common(a, b):
    return [(max(s, t), min(e, f)) for s, e in a for t, f in b if max(s, t) < min(e, f)]


class Node:
    def __init__(self, ranks):
        def puts(level):
            return [op for r in ranks for op in r.ops
                    if op.kind == "put" and op.level == level and op.is_over]

        # Rail puts of the node's ranks, each from its start until its receiver has seen it.
        self.network = union((op.started, op.landed) for op in puts("rail"))
        # Pushes between two ranks of the node.
        self.links = union((op.started, op.ended) for op in puts("node"))
        self.network_bytes = sum(op.bytes for op in puts("rail"))


class Figures:
    def __init__(self, call):
        numbers = sorted({r.node for r in call.ranks})
        self.total = call.total
        self.nodes = {n: Node([r for r in call.ranks if r.node == n]) for n in numbers}
        self.entered = max(r.begin for r in call.ranks)
        self.overlap = max(max(length(n.network), length(n.links)) for n in self.nodes.values()) / self.total

    def of_node(self, number, node):
        network, links = length(node.network), length(node.links)
        text = f"node {number}: "
        if network:
            first, last = node.network[0][0], node.network[-1][1]
            text += (f"network busy {network / 1000:.0f} us ({100 * network / self.total:.1f} %); idle "
                     f"{first / 1000:.0f} before the first put, {(last - first - network) / 1000:.0f} between puts, "
                     f"{(self.total - last) / 1000:.0f} after the last; {node.network_bytes} bytes out; ")
        hidden = length(common(node.network, node.links))
        text += f"pushes busy {links / 1000:.0f} us ({100 * links / self.total:.1f} %)"
        return text + (f", {100 * hidden / links:.0f} % of it under the network" if network and links else "")

    def lines(self):
        out = [f"overlap: max(network busy, pushes busy) / total = {self.overlap:.3f}; "
               f"the last rank enters the call at {self.entered / 1000:.0f} us"]
        shown = sorted(self.nodes.items())
        out += [self.of_node(number, node) for number, node in shown[:8]]
        return out + (["..."] if len(shown) > 8 else [])


def figures(call):
    return Figures(call)
