// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

namespace bench {
namespace {

const char* const allgather_usage = R"(Usage: mpirun -n P allgather [OPTION...]
Times MPI_Allgather on MPI_COMM_WORLD. In each iteration the slowest rank counts.

  --sizes LIST         bytes a rank: 64k,256k,1m, or 1k:1m (doubling), or none [1k:1m]
  --total              sizes are bytes of all ranks together (rounded down to equal parts)
  --iterations N       timed calls of each size [by size, within --seconds]
  --seconds X          time budget of each size, without --iterations [2]
  --warmup N           untimed calls of each size [by size]
  --validate WHICH     calls whose bytes are checked: none; few: some calls outside the timed loop;
                       all: every call [few]
  --in-place           use MPI_IN_PLACE
  --loop               also time as many calls back to back, without barriers in between
  --fresh              before each timed call a rank writes its block, and behind it reads the
                       result, as an application does; the time includes the reading
  --buffers N          pairs of buffers that take turns, as those of an application's layers do [1]
  --blocks BYTES@STRIDE  a derived datatype: blocks of BYTES bytes, STRIDE bytes from the start
                       of one to the start of the next (64@4k) [no holes]
  --memory KIND        kind of the buffers' memory: host, pinned or device; two kinds are those of
                       send and receive buffer (device,host); mixed: another pair on each rank [host]
  --csv FILE           append a row for each size; an empty file gets a header
  --label TEXT         the column label of the CSV rows
  --link-rate RATE     rate of a node's link: measured, or bytes per second (119.5e6), or bits (1gbit)
  --measure-link       the same as --link-rate measured
  --link-seconds X     length of each stream that measures the link [2]
  --ranks-per-node K   cut each host into virtual nodes of K ranks [0: nodes are hosts]

Exit status: 0; 1: a wrong byte was received; 2: a problem with an option or this machine.
)";

const char* const nccl_usage = R"(Usage: mpirun -n P nccl_allgather [OPTION...]
Times ncclAllGather, with a wait for its stream. Each rank has a GPU of its own. In each iteration
the slowest rank counts.

  --by LIST            plain: buffers of cudaMalloc; symmetric: symmetric windows; zero-cta: symmetric
                       windows, and copy engines in place of kernels [plain,symmetric,zero-cta]
  --sizes LIST         bytes of all ranks together: 64k,1m, or 1k:1m (doubling)
                       [1k,16k,64k,256k,1m,4m,16m,64m,256m,1g]
  --iterations N       timed calls of each size [by size, within --seconds]
  --seconds X          time budget of each size, without --iterations [2]
  --warmup N           untimed calls of each size [by size]
  --validate WHICH     calls whose bytes are checked: none; few: some calls outside the timed loop;
                       all: every call [few]
  --loop               also time as many calls back to back, without barriers in between
  --buffers N          pairs of buffers that take turns [1]
  --csv FILE           append a row for each size, as allgather does
  --label TEXT         the column label of the CSV rows

Exit status: 0; 1: a wrong byte was received or a call failed; 2: a problem with an option or this
machine.
)";

const char* const overlap_usage = R"(Usage: mpirun -n P gpu_overlap [OPTION...]
Times an allgather in device memory under bf16 matrix products (GEMMs). The GEMMs are
launched first. Each rank has a GPU of its own.

  --by LIST            mpi, mpi-nonblocking, nccl-plain, nccl-symmetric, nccl-zero-cta [mpi]
  --sizes LIST         bytes of all ranks together [64m:1g]
  --iterations N       iterations of each of the three measurements [20]
  --in-place           a rank's data is already in its place in the receive buffer
  --gemm N             matrices of N x N elements [8192]
  --gemm-factor X      launch GEMMs that take X times the allgather's time, or a little more [1.3]
  --csv FILE           append a row for each size; an empty file gets a header
  --label TEXT         the column label of the CSV rows

Exit status: 0; 1: a wrong byte was received or a call failed; 2: a problem with an option or this
machine.
)";

const char* const p2p_usage = R"(Usage: mpirun -n P p2p [OPTION...]
Every rank's copy engine pushes into the next rank's GPU, all at once. Each rank has a GPU of its own,
all on one host.

  --bytes SIZE         bytes of one copy [256m]
  --iterations N       timed copies, one behind the other [20]
  --csv FILE           append a row; an empty file gets a header
  --label TEXT         the column label of the CSV row

Exit status: 0; 1: a wrong byte was received or a call failed; 2: a problem with an option or this
machine.
)";

const char* const levels_usage = R"(Usage: mpirun -n P --mca coll hier levels [OPTION...]
Times three calls in turn: the network alone (all rails at once), the links alone (all nodes at once)
and MPI_Allgather of all ranks. In each call the slowest rank of all counts.

  --sizes LIST         bytes a rank: 256k,1m,4m, or 1m:8m (doubling) [256k,1m,4m]
  --total              sizes are bytes of all ranks together (rounded down to equal parts)
  --iterations N       timed rounds of the three calls for each size [by size, within --seconds]
  --seconds X          time budget of each size, without --iterations [2]
  --warmup N           untimed rounds of each size [by size]
  --validate WHICH     calls whose bytes are checked: none; few: some calls outside the timed loop;
                       all: every call [few]
  --in-place           use MPI_IN_PLACE; the links alone always use it
  --memory KIND        as for allgather: host, pinned, device, two of them, mixed [host]
  --csv FILE           append a row for each size; an empty file gets a header
  --label TEXT         the column label of the CSV rows
  --link-rate RATE     rate of a node's link: measured, or bytes per second (119.5e6), or bits (1gbit)
  --measure-link       the same as --link-rate measured
  --link-seconds X     length of each stream that measures the link [2]
  --ranks-per-node K   cut each host into virtual nodes of K ranks; also sets coll_hier_ranks_per_node

Exit status: 0; 1: a wrong byte was received or hier did not serve; 2: a problem with an option or
this machine.
)";

const char* const allgatherv_usage = R"(Usage: mpirun -n P allgatherv [OPTION...]
Times MPI_Allgather of equal blocks and MPI_Allgatherv of the same bytes in turn. Counts are equal,
growing (1 : 2 : ... : P), or all with one rank. In each iteration the slowest rank counts. The last
column is the time of a byte, compared with MPI_Allgather: of the bytes that the busiest node, or the
busiest rank of a single node, has to receive.

  --sizes LIST         bytes of all ranks together: 64k,1m, or 1k:1m (doubling) [64k,1m,16m,64m]
  --iterations N       timed rounds of each size [by size, within --seconds]
  --seconds X          time budget of each size, without --iterations [2]
  --in-place           use MPI_IN_PLACE
  --gap SIZE           bytes between the blocks of MPI_Allgatherv [0]
  --memory KIND        host, pinned or device; two kinds are those of send and receive buffer [host]
  --csv FILE           append a row for each size and counts; an empty file gets a header
  --label TEXT         the column label of the CSV rows
  --ranks-per-node K   cut each host into virtual nodes of K ranks [0: nodes are hosts]

Exit status: 0; 1: a wrong byte was received; 2: a problem with an option or this machine.
)";

const char* const requests_usage = R"(Usage: mpirun -n P requests [OPTION...]
Times MPI_Allgather, MPI_Iallgather and a persistent MPI_Allgather_init, each with its wait, in turn. In each
iteration the slowest rank counts. Then each rank computes between MPI_Iallgather and MPI_Wait, without a call of
MPI, as long as the call takes alone. The last column says how much of the call this hides.

  --sizes LIST         bytes a rank: 64k,1m, or 1k:1m (doubling) [8:4m]
  --total              sizes are bytes of all ranks together (rounded down to equal parts)
  --iterations N       timed rounds of each size [by size, within --seconds]
  --seconds X          time budget of each size, without --iterations [2]
  --in-place           use MPI_IN_PLACE
  --memory KIND        host, pinned or device; two kinds are those of send and receive buffer [host]
  --csv FILE           append a row for each size; an empty file gets a header
  --label TEXT         the column label of the CSV rows
  --ranks-per-node K   cut each host into virtual nodes of K ranks [0: nodes are hosts]

Exit status: 0; 1: a wrong byte was received; 2: a problem with an option or this machine.
)";

const char* const threads_usage = R"(Usage: mpirun -n P threads [OPTION...]
Counts the calls of MPI_Allgather that 1, 2 and 4 threads of each rank complete, each thread on a communicator of its
own. The last column compares with one thread.

  --sizes LIST         bytes a rank: 64k,1m, or 1k:1m (doubling) [8,4k,64k,1m]
  --seconds X          time of each measurement [2]
  --csv FILE           append a row for each size and number of threads; an empty file gets a header
  --label TEXT         the column label of the CSV rows
  --ranks-per-node K   cut each host into virtual nodes of K ranks [0: nodes are hosts]

Exit status: 0; 1: a wrong byte was received; 2: a problem with an option or this machine.
)";

}  // namespace

const char* usage(Program program)
{
    switch (program) {
    case Program::allgather:
        return allgather_usage;
    case Program::nccl_allgather:
        return nccl_usage;
    case Program::gpu_overlap:
        return overlap_usage;
    case Program::p2p:
        return p2p_usage;
    case Program::levels:
        return levels_usage;
    case Program::allgatherv:
        return allgatherv_usage;
    case Program::requests:
        return requests_usage;
    case Program::threads:
        return threads_usage;
    }
    return "";
}

}  // namespace bench
