# SPDX-License-Identifier: BSD-3-Clause
# Turns the rows of all rounds into one table. Exit status 1: hier did not serve every call.
#
# A module's figure at a size is the median of its rounds' medians; "best" is its best round.

BEGIN { FS = ","; count = split(modules, module, ",") }

NR == 1 {
    for (i = 1; i <= NF; i++) column[$i] = i
    next
}

{
    size = $column["bytes_per_rank"]
    label = $column["label"]
    if (!(size in seen)) order[++sizes] = size
    seen[size] = 1
    times[label, size] = times[label, size] " " $column["median_us"]
    rate = $column["link_bytes_per_second"] + 0
    entering[size] = $column["bound_us"] / 1e6 * rate
    if (rate > best_rate) best_rate = rate
    if ($column["ucx"] != "") ucx = $column["ucx"]
    host = $column["host"]; kernel = $column["kernel"]; mpi = $column["mpi"]; commit = $column["commit"]
    ranks = $column["ranks"]; date = $column["date"]; in_place = $column["in_place"]
    fresh = $column["fresh"]
    if (label == "hier") hier_rows++
    if (label == "hier" && $column["served_by_hier"] != $column["calls"]) {
        served = $column["served_by_hier"] == "" ? "no" : $column["served_by_hier"]
        fallback[size] = served " of " $column["calls"]
    }
}

function head() {
    printf "MPI_Allgather%s%s, %d ranks on %s%s, median us of %d round(s), time by the slowest rank\n",
        in_place == "yes" ? " in place" : "", fresh == "yes" ? " with fresh buffers" : "", ranks, layout, virtual ? " virtual nodes of one host" : "", rounds
    printf "%s, %s, %s cores, kernel %s, %s, pml %s, UCX %s, commit %s\n",
        date, host, cores, kernel, mpi, pml == "" ? "unknown" : pml, ucx == "" ? "not loaded" : ucx, commit
    if (best_rate) printf "link: %.2f MB/s a node and direction, measured in this run (best round)\n", best_rate / 1e6
}

function title(    i) {
    printf "\n%10s", "bytes/rank"
    if (best_rate) printf " %11s", "bound us"
    for (i = 1; i <= count; i++) {
        printf " %11s", module[i]
        if (module[i] == "hier") printf " %11s", "best"
        if (module[i] == "hier" && best_rate) printf " %9s", "to bound"
    }
    for (i = 1; i <= count; i++) if (module[i] != "hier" && has_hier) printf " %11s", module[i] "/hier"
    print ""
}

function line(size,    i, value, hier, bound) {
    bound = best_rate ? entering[size] / best_rate * 1e6 : ""
    hier = median(times["hier", size])
    printf "%10s", size_text(size)
    if (best_rate) printf " %11s", cell(bound, "%.1f")
    for (i = 1; i <= count; i++) {
        value = median(times[module[i], size])
        printf " %11s", cell(value, "%.1f") (module[i] == "hier" && size in fallback ? "*" : "")
        if (module[i] != "hier") continue
        printf " %11s", cell(min_of(times["hier", size]), "%.1f")
        if (best_rate) printf " %9s", (bound > 0 && hier != "" ? sprintf("%+.1f%%", (hier / bound - 1) * 100) : "-")
    }
    for (i = 1; i <= count; i++) {
        if (module[i] == "hier" || !has_hier) continue
        value = median(times[module[i], size])
        printf " %11s", (hier > 0 && value != "" ? sprintf("%.2fx", value / hier) : "-")
    }
    print ""
}

function notes(    i) {
    for (i = 1; i <= sizes; i++) if (order[i] in fallback) {
        printf "* at %s a rank hier served %s calls; the fallback module serves calls below coll_hier_min_bytes in all\n",
            size_text(order[i]), fallback[order[i]]
        failed = !allow_fallback
    }
    if (has_hier && !hier_rows) {
        print "FAILED: no figures of hier"
        failed = 1
    } else if (failed) {
        print "FAILED: hier did not serve every call: set OMPI_MCA_coll_hier_min_bytes=1, or give larger --sizes or --allow-fallback"
    }
    if (best_rate && burst > 0) {
        printf "after a rest a link sends up to %s bytes at once, so a call can take %.0f us less than the bound\n",
            burst, burst / best_rate * 1e6
    }
    if (busy > 10) printf "CAUTION: other programs kept the cores %d%% busy: measure again on a quiet machine\n", busy
}

END {
    for (i = 1; i <= count; i++) if (module[i] == "hier") has_hier = 1
    if (!sizes) { print "no rows: nothing was measured"; exit 1 }
    head()
    title()
    for (i = 1; i <= sizes; i++) line(order[i])
    notes()
    exit failed ? 1 : 0
}
