// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

namespace bench {
namespace {

const char* const allgather_usage = R"(Usage: mpirun -n P allgather [OPTION...]
Times MPI_Allgather on MPI_COMM_WORLD; in each iteration the slowest rank counts.

  --sizes LIST         bytes a rank: 64k,256k,1m, or 1k:1m (doubling), or none [1k:1m]
  --total              sizes are the bytes of all ranks together (rounded down to equal parts)
  --iterations N       timed calls a size [by size, within --seconds]
  --seconds X          time budget of one size when --iterations is absent [2]
  --warmup N           untimed calls a size [by size]
  --validate WHICH     none; few: some calls outside the timed loop; all: every call too [few]
  --in-place           MPI_IN_PLACE
  --loop               then time as many calls back to back, with no barriers in between
  --blocks BYTES@STRIDE  a derived datatype: blocks of BYTES bytes, STRIDE bytes from the start
                       of one to the start of the next (64@4k) [no holes]
  --memory KIND        where the buffers are: host, pinned or device; two of them are the send
                       and the receive buffer's (device,host); mixed: each rank another two [host]
  --csv FILE           append a row a size; the header is written into an empty file
  --label TEXT         goes into the CSV rows
  --link-rate RATE     measured, or bytes per second (119.5e6), or bits (1gbit)
  --measure-link       the same as --link-rate measured
  --link-seconds X     length of each timed stream of that measurement [2]
  --ranks-per-node K   cut each host into virtual nodes of K ranks [0: nodes are hosts]

Exit status: 0; 1 a wrong byte was received; 2 an option or its value is not usable here.
)";

const char* const nccl_usage = R"(Usage: mpirun -n P nccl_allgather [OPTION...]
Times ncclAllGather (with a wait for its stream), a rank a GPU; the slowest rank counts.

  --by LIST            plain: buffers of cudaMalloc; symmetric: symmetric windows; zero-cta: those
                       with copy engines in place of kernels [plain,symmetric,zero-cta]
  --sizes LIST         bytes of all ranks together: 64k,1m, or 1k:1m (doubling)
                       [1k,16k,64k,256k,1m,4m,16m,64m,256m,1g]
  --iterations N       timed calls a size [by size, within --seconds]
  --seconds X          time budget of one size when --iterations is absent [2]
  --warmup N           untimed calls a size [by size]
  --validate WHICH     none; few: some calls outside the timed loop; all: every call too [few]
  --loop               then time as many calls back to back, with no barriers in between
  --csv FILE           append a row a size, as allgather does
  --label TEXT         goes into the CSV rows

Exit status: 0; 1 a wrong byte was received or a call failed; 2 this cannot be run as asked.
)";

const char* const overlap_usage = R"(Usage: mpirun -n P gpu_overlap [OPTION...]
Times a blocking allgather in device memory under bf16 matrix products (GEMMs) that were launched
first, a rank a GPU.

  --by LIST            mpi, nccl-plain, nccl-symmetric, nccl-zero-cta [mpi]
  --sizes LIST         bytes of all ranks together [64m:1g]
  --iterations N       of each of the three measurements [20]
  --in-place           a rank's data is already in its place in the receive buffer
  --gemm N             matrices of N x N [8192]
  --gemm-factor X      as many GEMMs as take X times the allgather's time, or a little more [1.3]
  --csv FILE           append a row a size; the header is written into an empty file
  --label TEXT         goes into the CSV rows

Exit status: 0; 1 a wrong byte was received or a call failed; 2 this cannot be run as asked.
)";

const char* const p2p_usage = R"(Usage: mpirun -n P p2p [OPTION...]
Every rank's copy engine pushes into the next rank's GPU, all at once; a rank a GPU of one host.

  --bytes SIZE         of one copy [256m]
  --iterations N       timed copies, one behind the other [20]
  --csv FILE           append a row; the header is written into an empty file
  --label TEXT         goes into the CSV row

Exit status: 0; 1 a wrong byte was received or a call failed; 2 this cannot be run as asked.
)";

const char* const levels_usage = R"(Usage: mpirun -n P --mca coll hier levels [OPTION...]
Times the network alone (the rails, all at once), the links alone (the nodes, all at once) and
MPI_Allgather of all ranks, in turn; in each call the slowest rank of all counts.

  --sizes LIST         bytes a rank: 256k,1m,4m, or 1m:8m (doubling) [256k,1m,4m]
  --total              sizes are the bytes of all ranks together (rounded down to equal parts)
  --iterations N       timed rounds of the three calls a size [by size, within --seconds]
  --seconds X          time budget of one size when --iterations is absent [2]
  --warmup N           untimed rounds a size [by size]
  --validate WHICH     none; few: some calls outside the timed loop; all: every call too [few]
  --in-place           MPI_IN_PLACE; the links alone always are
  --memory KIND        as for allgather: host, pinned, device, two of them, mixed [host]
  --csv FILE           append a row a size; the header is written into an empty file
  --label TEXT         goes into the CSV rows
  --link-rate RATE     measured, or bytes per second (119.5e6), or bits (1gbit)
  --measure-link       the same as --link-rate measured
  --link-seconds X     length of each timed stream of that measurement [2]
  --ranks-per-node K   virtual nodes of K ranks, for hier too: it sets coll_hier_ranks_per_node

Exit status: 0; 1 a wrong byte was received or hier did not serve; 2 this cannot be run as asked.
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
    }
    return "";
}

}  // namespace bench
