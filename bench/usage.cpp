#include "options.hpp"

namespace bench {

const char* usage()
{
    return R"(Usage: mpirun -n P allgather [OPTION...]
Times MPI_Allgather on MPI_COMM_WORLD; in each iteration the slowest rank counts.

  --sizes LIST         bytes a rank: 64k,256k,1m, or 1k:1m (doubling), or none [1k:1m]
  --iterations N       timed calls a size [by size, within --seconds]
  --seconds X          time budget of one size when --iterations is absent [2]
  --warmup N           untimed calls a size [by size]
  --validate WHICH     none; few: some calls outside the timed loop; all: every call too [few]
  --in-place           MPI_IN_PLACE
  --memory KIND        where the buffers are: host, device [host]
  --csv FILE           append a row a size; the header is written into an empty file
  --label TEXT         goes into the CSV rows
  --link-rate RATE     measured, or bytes per second (119.5e6), or bits (1gbit)
  --measure-link       the same as --link-rate measured
  --link-seconds X     length of each timed stream of that measurement [2]
  --ranks-per-node K   cut each host into virtual nodes of K ranks [0: nodes are hosts]

Exit status: 0; 1 a wrong byte was received; 2 an option or its value is not usable.
)";
}

}  // namespace bench
