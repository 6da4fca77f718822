# SPDX-License-Identifier: BSD-3-Clause
# Turns the rows of bench/levels into one table. The first file has the counted bytes, the second one the rows.
#
# A figure is the median of the rounds' medians, an overlap the median of the rounds' overlaps.

BEGIN { FS = "," }

FNR == 1 {
    file++
    split("", column)
    for (i = 1; i <= NF; i++) column[$i] = i
    next
}

# Reads a label like 4+2+1:block. Sets per_node[1..n], ranks and smallest, and returns n.
function read_layout(label,    n, i) {
    sub(/:.*/, "", label)
    n = split(label, per_node, "+")
    ranks = 0
    smallest = per_node[1] + 0
    for (i = 1; i <= n; i++) {
        ranks += per_node[i]
        if (per_node[i] < smallest) smallest = per_node[i] + 0
    }
    return n
}

# The counted nodes are in the layout's order. Nodes that the layout does not use come last.
file == 1 {
    key = $column["label"] SUBSEP $column["bytes_per_rank"]
    if (++counted[key] > read_layout($column["label"])) next
    min_in = (ranks - per_node[counted[key]]) * $column["bytes_per_rank"]
    busiest_in = (ranks - smallest) * $column["bytes_per_rank"]
    if (min_in > 0 && $column["bytes_in"] / min_in > max_in[key]) max_in[key] = $column["bytes_in"] / min_in
    if (busiest_in > 0 && $column["bytes_out"] / busiest_in > max_out[key])
        max_out[key] = $column["bytes_out"] / busiest_in
    next
}

{
    key = $column["label"] SUBSEP $column["bytes_per_rank"]
    if (!(key in seen)) order[++keys] = key
    seen[key] = 1
    network[key] = network[key] " " $column["network_us"]
    links[key] = links[key] " " $column["links_us"]
    together[key] = together[key] " " $column["together_us"]
    overlap[key] = overlap[key] " " $column["overlap"]
    rate = $column["link_bytes_per_second"] + 0
    if (rate > best_rate) best_rate = rate
    host = $column["host"]; kernel = $column["kernel"]; mpi = $column["mpi"]; commit = $column["commit"]
    if ($column["ucx"] != "") ucx = $column["ucx"]
    date = $column["date"]; in_place = $column["in_place"]
}

function line(key,    part, bound, whole) {
    split(key, part, SUBSEP)
    read_layout(part[1])
    bound = best_rate ? (ranks - smallest) * part[2] / best_rate * 1e6 : 0
    whole = median(together[key])
    sub(/:block$/, "", part[1])
    sub(/:/, " ", part[1])
    printf "%-18s %10s %11s %11s %11s %11s %8s %9s %7s %7s\n", part[1], size_text(part[2]),
        cell(bound ? bound : "", "%.1f"), cell(median(network[key]), "%.1f"), cell(median(links[key]), "%.1f"),
        cell(whole, "%.1f"), cell(median(overlap[key]), "%.3f"),
        (bound ? sprintf("%+.1f%%", (whole / bound - 1) * 100) : "-"),
        cell(max_in[key], "%.3f"), cell(max_out[key], "%.3f")
}

END {
    if (!keys) { print "no rows: nothing was measured"; exit 1 }
    printf "MPI_Allgather%s by hier and its levels alone, median us of %d round(s), time by the slowest rank\n",
        in_place == "yes" ? " in place" : "", rounds
    printf "%s, %s, %s cores, kernel %s, %s, UCX %s, commit %s\n",
        date, host, cores, kernel, mpi, ucx == "" ? "not loaded" : ucx, commit
    if (best_rate) printf "link: %.2f MB/s a node and direction, measured in this run (best round)\n", best_rate / 1e6
    printf "\n%-18s %10s %11s %11s %11s %11s %8s %9s %7s %7s\n", "ranks of each node", "bytes/rank", "bound us",
        "network us", "links us", "together us", "overlap", "to bound", "in", "out"
    for (i = 1; i <= keys; i++) line(order[i])
    if (count > 0) printf "in, out: bytes on a link / the least possible, mean of %d calls, of the busiest node\n", count
    if (best_rate && burst > 0)
        printf "after a rest a link sends up to %s bytes at once, so a call can take %.0f us less than the bound\n",
            burst, burst / best_rate * 1e6
    if (busy > 10) printf "CAUTION: other programs kept the cores %d%% busy: measure again on a quiet machine\n", busy
}
