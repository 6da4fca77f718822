// SPDX-License-Identifier: BSD-3-Clause
#include "communicators.hpp"

namespace hier_test::fuzz {

namespace {

MPI_Comm split(MPI_Comm from, int color, int key)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(from, color, key, &comm);
    return comm;
}

// A number of a rank. All ranks can work out that of any rank.
int lot(std::uint64_t draw, int rank, unsigned limit)
{
    return static_cast<int>(pick(draw, static_cast<std::uint64_t>(rank), limit));
}

// The ranks with the lot 1, in the order of the given communicator. At least rank 0 has to be there.
MPI_Comm of_group(MPI_Comm from, std::uint64_t draw)
{
    std::vector<int> members;
    for (int rank = 0; rank < size_of(from); ++rank) {
        if (rank == 0 || lot(draw, rank, 3) != 0) members.push_back(rank);
    }
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm_group(from, &all);
    MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_create(from, some, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return comm;
}

// A child whose parent is freed at once.
MPI_Comm of_freed_parent(MPI_Comm from, std::uint64_t draw)
{
    MPI_Comm parent =
        split(from, lot(draw, rank_of(from), 4) == 0, lot(draw + 1, rank_of(from), 99));
    MPI_Comm child = split(parent, 0, -rank_of(parent));
    MPI_Comm_free(&parent);
    return child;
}

}  // namespace

Communicators::Communicators(MPI_Comm base, std::uint64_t seed) : base_(base), seed_(seed) {}

Communicators::~Communicators() { free_all(); }

void Communicators::free_all()
{
    for (Slot& slot : slots_) {
        free(slot);
    }
}

std::uint64_t Communicators::generation_of(std::size_t slot, std::uint64_t number)
{
    constexpr std::array<std::uint64_t, slots> cases = {0, 67, 113, 191, 331, 607};
    return cases[slot] == 0 ? 0 : (number + 29 * slot) / cases[slot];
}

void Communicators::free(Slot& slot)
{
    if (slot.comm != MPI_COMM_NULL) MPI_Comm_free(&slot.comm);
    slot = Slot();
}

MPI_Comm Communicators::get(std::size_t wanted, std::uint64_t number)
{
    for (std::size_t i = 1; i < slots; ++i) {
        if (slots_[i].is_made && slots_[i].generation != generation_of(i, number)) free(slots_[i]);
    }
    if (wanted == 0) {
        return base_;
    }
    Slot& slot = slots_[wanted];
    if (!slot.is_made) {
        slot.generation = generation_of(wanted, number);
        slot.comm = make(wanted, slot.generation);
        slot.is_made = true;
        ++made_;
    }
    return slot.comm;
}

MPI_Comm Communicators::make(std::size_t slot, std::uint64_t generation) const
{
    const std::uint64_t draw = mix(mix(seed_, slot), generation);
    const int rank = rank_of(base_);
    MPI_Comm comm = MPI_COMM_NULL;
    switch (pick(draw, 1, 10)) {
    case 0:
        MPI_Comm_dup(base_, &comm);
        return comm;
    case 1:
        return split(base_, 0, -rank);
    case 2:
    case 3:
        return split(base_, 0, lot(draw, rank, 1000));
    case 4:
    case 5:
        return split(base_, lot(draw, rank, 2), lot(draw + 1, rank, 1000));
    case 6:
        return split(base_, lot(draw, rank, 3) == 0 ? MPI_UNDEFINED : 0, rank);
    case 7:
        return of_group(base_, draw);
    case 8:
        return of_freed_parent(base_, draw);
    default:  // most often one rank alone
        return split(base_, lot(draw, rank, 6), 0);
    }
}

}  // namespace hier_test::fuzz
