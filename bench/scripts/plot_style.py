# SPDX-License-Identifier: BSD-3-Clause
"""Names, colours and marks of the peers, and the texts of sizes and times."""

# A peer has the same colour and mark in every plot. Colours can be told apart without red and green; marks without any.
PEERS = {
    "hier": ("#0058b0", "o"),
    "hier, MPI_Iallgather": ("#3fa7dc", "v"),
    "NCCL plain": ("#e08a00", "s"),
    "NCCL symmetric": ("#00936b", "^"),
    "NCCL zero-CTA": ("#c9579b", "D"),
    "tuned": ("#cc4a00", "s"),
    "ring": ("#3fa7dc", "v"),
    "HAN": ("#7a5230", "^"),
    "HAN simple": ("#b08a63", "<"),
    "acoll": ("#00936b", "p"),
    "UCC": ("#7440a8", "D"),
    "UCC CUDA": ("#7440a8", "D"),
    "NCCL through UCC": ("#00936b", "^"),
    "Open MPI 5, best": ("#a8324a", "P"),
    "hier, cudaMalloc": ("#0058b0", "o"),
    "hier, expandable segments": ("#3fa7dc", "v"),
    "hier, cudaMallocAsync": ("#7440a8", "D"),
    "NCCL": ("#e08a00", "s"),
    "NCCL, with expandable segments": ("#7a5230", "^"),
    "bound": ("#444444", ""),
    "whole call": ("#0058b0", ""),
    "network alone": ("#3fa7dc", ""),
    "links alone": ("#e08a00", ""),
}
# For labels that are not in the table, in the order of the rows.
RESERVE = [("#666666", "X"), ("#9a8b00", "P"), ("#005f73", "h"), ("#8f2d56", "*"), ("#4f772d", "p"), ("#444466", "d")]

LABELS = {
    "hier": "hier",
    "tuned": "tuned",
    "ring": "ring",
    "han": "HAN",
    "han-simple": "HAN simple",
    "ucc": "UCC",
    "ucc-cuda": "UCC CUDA",
    "ucc-nccl": "NCCL through UCC",
    "ompi5-best": "Open MPI 5, best",
}
NCCL_MODES = {"plain": "NCCL plain", "symmetric": "NCCL symmetric", "zero-cta": "NCCL zero-CTA"}


def peer_of(row):
    """The name of the peer of a row: bench/gpu_overlap has it in `by`, NCCL in `call`, all others in `label`."""
    by, call, label = row.get("by", ""), row.get("call", ""), row.get("label", "")
    if by.startswith("nccl-"):
        return NCCL_MODES.get(by[5:], by)
    if by.startswith("mpi"):
        is_hier = row.get("coll", "hier").split(",")[0] == "hier"
        if by == "mpi":
            return "hier" if is_hier else "MPI_Allgather"
        return "hier, MPI_Iallgather" if is_hier else "MPI_Iallgather"
    if call.startswith("ncclAllGather "):
        return NCCL_MODES.get(call[14:], call[14:])
    return LABELS.get(label, label or call or "MPI_Allgather")


def styles(names):
    """{name: (colour, mark)}, in the order of the names."""
    unknown = [name for name in names if name not in PEERS]
    extra = {name: RESERVE[i % len(RESERVE)] for i, name in enumerate(unknown)}
    return {name: PEERS.get(name) or extra[name] for name in names}


def ordered(names):
    """hier comes first, then the peers of the table in its order, then the others in the order of the rows."""
    table = list(PEERS)
    return sorted(names, key=lambda name: table.index(name) if name in PEERS else len(table))


def number_text(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def size_text(size):
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{number_text(size / step)} {unit}"
    return f"{number_text(size)} B"


def time_text(microseconds):
    for unit, step in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= step:
            return f"{number_text(microseconds / step)} {unit}"
    return f"{number_text(microseconds)} us"
