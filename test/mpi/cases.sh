# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The table of cases of test/mpi/run, which sources it. A case is one mpirun of one program:
#
#     case_ NAME [KEY=VALUE...] -- PROGRAM [ARGUMENT...]
#
# For example:
#
#     case_ "fault-stop-{3,1}" layout=3,1 mca="$fails_after 3" status=error says="survivor: error class" limit=60 \
#         -- fault --mode stop
#
# This starts test/mpi/fault on two nodes, with three ranks and one rank, and sets MCA parameters. The case passes if
# mpirun ends within 60 seconds with an error, and the output has "survivor: error class".
#
# The keys, with their defaults in brackets:
#
#   set        the run that the case belongs to [default]. all: only run --all; valgrind: only run --valgrind; rdma:
#              only run --rdma; soak: only test/soak. run --all has the default cases, too.
#
#   Ranks and nodes. Either ranks and node_size, on this machine, or a layout on several nodes.
#   ranks      the number of ranks [2]
#   node_size  ranks on each virtual node, by coll_hier_ranks_per_node; the last node may have fewer. 0: the nodes are
#              as Open MPI finds them [0].
#   layout     ranks on each node of the virtual cluster, "3,1"; without a cluster, of host names on this machine
#   order      how a layout numbers its ranks: block, cyclic, reversed, shuffled or map-by-node [block]
#   links      network devices of each node of the virtual cluster; more than 1 needs the cluster [1]
#   rate       rate of the virtual cluster's links [10gbit]
#   cores      hwloc tells the ranks that their host has so many cores [those that it has]
#
#   Open MPI
#   coll       the list of --mca coll [hier]; "-": no such option
#   mca        more MCA parameters, "name value name value"
#   odd        NAME=VALUE: an environment variable that only the odd ranks get
#   ulfm       yes: needs an Open MPI with ULFM, which lets the other ranks live when one ends
#   shm        private: the case has a /dev/shm of its own; or the size of that /dev/shm, as mount takes it
#
#   GPU memory, on a simulated runtime
#   gpu        how long the runtime delays an operation, in microseconds (HIP_SIM_DELAY_US). Without this key a case has
#              no GPU.
#   runtime    the runtime that is simulated: rocm or cuda [rocm]
#   gdr        all or odd: UCX says on these ranks that it knows device memory; the CPU reaches this memory
#   refuses    what the simulated CUDA cannot do (CUDA_SIM_REFUSES)
#   bar        the CPU reaches device memory (HIP_SIM_LARGE_BAR)
#   gdrcopy    1: hier finds GDRCopy, by which the CPU reaches the memory of the simulated CUDA
#   least      how long the runtime delays an operation at least (HIP_SIM_LEAST_DELAY_US) [0]
#   gpu_links  the value of CUDA_SIM_LINKS; direct: each pair of simulated CUDA devices has a link of its own
#   devices    how many GPUs there are [16]. With fewer than ranks, ranks share GPUs.
#   kernels    1: the GPU module finds kernels, and but for the fuzzer coll_hier_kernels is 2
#   by_graphs  so many kernels at least each process launches by graphs of CUDA
#   modules    where hier looks for its GPU modules (HIER_GPU_MODULES)
#   leaves     the kind of GPU object that may be alive when a process ends, or anything [none]
#
#   The verdict
#   status     how mpirun must end [ok]: ok, error, or abort (hier ends the job; no process leaves a report of its GPU)
#   says       an extended regular expression that the output must match
#   never      one that the output must not match
#   limit      seconds until the case is ended and has failed [110]
#
#   fault      for the table in doc/testing.md: "fault | how it is injected | what follows"
#
#   directory  where the build tree has the program [test/mpi]. Programs in bench print no verdict of their own.
#
# Most programs take --expect: who must have served the calls (hier, fallback or none).
#
# One start of mpirun costs as much as hundreds of calls. So each program tries many things at once.

fails_after="coll_hier_timeout_action fail coll_hier_timeout"

inter=(direct ring bundles)
intra=(cma shm auto)

# with_algorithms NAME KEY=VALUE... -- PROGRAM...: a case for each of the nine pairs of algorithms, between nodes and
# inside them. One of the nine cases is in the default set, each time another one. run --all has all of them. With
# one_is=all the default set has none.
turn=0
with_algorithms() {
    local name=$1 way set
    shift
    for way in {0..8}; do
        ((way == turn % 9)) && set=${one_is:-default} || set=all
        case_ "$name-${inter[way % 3]}-${intra[way / 3]}" set="$set" \
            mca="coll_hier_inter ${inter[way % 3]} coll_hier_intra ${intra[way / 3]}" "$@"
    done
    ((++turn))
}

# ---- Host memory

# Ranks 1 to 9 on 1 to 4 nodes. All virtual nodes but the last one have the same size. 5, 6 and 9 ranks on 4 nodes are not
# possible in this way, so these cases have a layout. The default set has every second of them.
for ranks in 1 2 3 4 5 6 7 8 9; do
    for nodes in 1 2 3 4; do
        ((nodes <= ranks)) || continue
        size=$(((ranks + nodes - 1) / nodes))
        where=(ranks="$ranks" node_size="$((nodes == 1 ? 0 : size))")
        if (((ranks + size - 1) / size != nodes)); then
            uneven=$(awk -v r="$ranks" -v n="$nodes" 'BEGIN {
                for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", int(r / n) + (i < r % n) }')
            where=(layout="$uneven")
        fi
        one_is=$( (((ranks + nodes) % 2)) && echo all) with_algorithms "exact-$ranks-on-$nodes" "${where[@]}" \
            -- exact --expect hier --seed "$ranks$nodes"
    done
done

# Uneven nodes, and every order of ranks. The default set has all orders with few ranks, and some with more.
turn=0
for layout in 3,1 2,3,1 4,1,2; do
    for order in block cyclic reversed shuffled map-by-node; do
        one_is=default
        case $layout-$order in
            2,3,1-block | 2,3,1-reversed | 2,3,1-map* | 4,1,2-block | 4,1,2-cyclic | 4,1,2-shuffled) one_is=all ;;
        esac
        with_algorithms "exact-{$layout}-$order" layout="$layout" order="$order" -- exact --expect hier
    done
done
one_is=default

# Chunks that do not divide a shard, one in flight at a time.
case_ exact-small-chunks ranks=5 node_size=2 mca="coll_hier_chunk_bytes 65536 coll_hier_depth 1" -- exact --expect hier
case_ exact-chosen-by-hier ranks=6 node_size=3 -- exact --expect hier --calls 200

# MPI_Allgatherv. The nine cases of the default set have the nine pairs of algorithms.
turn=0
for shape in "4 0" "5 1" "4 2" "3 0" "6 2"; do
    read -r ranks size <<<"$shape"
    with_algorithms "allgatherv-$ranks-by-$size" ranks="$ranks" node_size="$size" -- allgatherv --expect hier --seed "$ranks$size"
done
for where in "3,1 reversed" "2,3,1 cyclic" "2,3,1 shuffled" "2,3,1 map-by-node"; do
    read -r layout order <<<"$where"
    with_algorithms "allgatherv-{$layout}-$order" layout="$layout" order="$order" -- allgatherv --expect hier
done
case_ allgatherv-1-by-0 ranks=1 -- allgatherv --expect hier
case_ allgatherv-chosen-by-hier ranks=6 node_size=3 -- allgatherv --expect hier --calls 200
case_ allgatherv-small-chunks ranks=5 node_size=2 mca="coll_hier_chunk_bytes 5000 coll_hier_depth 1" \
    -- allgatherv --expect hier
for window in 4k 64k; do
    case_ "allgatherv-parts-$window" ranks=4 node_size=2 mca="coll_hier_staging_window $window" \
        -- allgatherv --expect hier --scales 7,4099,150001 --calls 20
done
# At such a rate the model spreads blocks of any size.
case_ allgatherv-round ranks=4 mca="coll_hier_link_rate 0.001" -- allgatherv --expect hier --scales 4099,150001 --calls 40
case_ allgatherv-carriers ranks=6 mca="coll_hier_link_rate 0.001" -- allgatherv --expect hier --scales 7001 --calls 40
case_ allgatherv-carriers-shm ranks=4 mca="coll_hier_link_rate 0.001 coll_hier_intra shm" \
    -- allgatherv --expect hier --scales 7001 --calls 40
case_ allgatherv-carried ranks=6 node_size=3 mca="coll_hier_link_rate 0.001 coll_hier_inter direct" \
    -- allgatherv --expect hier --scales 4099,150001 --calls 40
case_ allgatherv-carried-ring ranks=5 node_size=2 mca="coll_hier_link_rate 0.001 coll_hier_inter ring" \
    -- allgatherv --expect hier --scales 4099,150001 --calls 40
case_ allgatherv-parts-ring ranks=3 node_size=1 mca="coll_hier_staging_window 64k coll_hier_inter ring coll_hier_chunk_bytes 5000" \
    -- allgatherv --expect hier --scales 7,4099,150001 --calls 20

# Blocks that lie elsewhere on each rank. On several nodes only the owner of a block can put it to its place.
for way in "cma 4 0 intra cma" "shm 3 0 intra shm" "round 4 0 link_rate 0.001" "parts 3 0 staging_window 64k"; do
    read -r name ranks size key value <<<"$way"
    case_ "displaced-$name" ranks="$ranks" node_size="$size" mca="coll_hier_$key $value" -- displaced
done
case_ displaced-direct ranks=6 node_size=2 mca="coll_hier_inter direct coll_hier_eager_bytes 0" -- displaced --blocks equal
case_ displaced-parts-direct ranks=4 node_size=2 mca="coll_hier_inter direct coll_hier_eager_bytes 0 coll_hier_staging_window 64k" \
    -- displaced --blocks equal
case_ displaced-ring ranks=3 node_size=1 mca="coll_hier_inter ring" -- displaced --expect staged
case_ displaced-published ranks=3 mca="coll_hier_min_bytes 1" -- displaced --bytes 500
# Three and more ranks with a core each publish larger blocks, most of all in skewed calls.
case_ displaced-skewed ranks=4 cores=4 mca="coll_hier_verbose 1" says="up to 100000 bytes a rank: published" \
    -- displaced --bytes 100000
case_ published-large ranks=6 cores=6 mca="coll_hier_verbose 1" says=": 65536 bytes a rank: published" never=": 65537 bytes a rank: published" \
    -- exact --expect hier --sizes 65536,65537 --calls 10
case_ displaced-eager ranks=4 node_size=2 mca="coll_hier_min_bytes 1" -- displaced --expect staged --bytes 500
case_ displaced-bundles ranks=4 node_size=2 mca="coll_hier_inter bundles" -- displaced --expect staged

# The same memory again, with the same arguments or with others. A progress thread that has a core keeps what it moves.
for shape in "2 0 64" "4 2" "3 1"; do
    read -r ranks size cores <<<"$shape"
    case_ "again-$ranks-by-$size" ranks="$ranks" node_size="$size" -- again --expect hier
    case_ "again-progress-$ranks-by-$size" ranks="$ranks" node_size="$size" cores="$cores" mca="coll_hier_progress_thread 1" \
        -- again --expect hier
done

# MPI_Iallgather, MPI_Iallgatherv and their persistent forms.
for shape in "2 0 16 default" "4 2 16 default" "3 1 16 default" "1 0 1 default" "4 0 100 all" "3 2 16 all" "6 2 4 all"; do
    read -r ranks size large set <<<"$shape"
    case_ "nonblocking-$ranks-by-$size" set="$set" ranks="$ranks" node_size="$size" -- nonblocking --expect hier --large "$large"
    case_ "persistent-$ranks-by-$size" set="$set" ranks="$ranks" node_size="$size" -- persistent --expect hier --starts 3
done
for where in "3,1 reversed default" "2,3,1 cyclic all" "2,1 shuffled all"; do
    read -r layout order set <<<"$where"
    case_ "nonblocking-{$layout}-$order" set="$set" layout="$layout" order="$order" -- nonblocking --expect hier --large 4
    case_ "persistent-{$layout}-$order" set="$set" layout="$layout" order="$order" -- persistent --expect hier --starts 3
done
for way in "shm 3 0 intra shm" "ring 3 1 inter ring" "bundles 4 2 inter bundles" "small-chunks 4 2 chunk_bytes 5000"; do
    read -r name ranks size variable value <<<"$way"
    case_ "nonblocking-$name" ranks="$ranks" node_size="$size" mca="coll_hier_$variable $value" -- nonblocking --expect hier --large 4
    case_ "persistent-$name" set=all ranks="$ranks" node_size="$size" mca="coll_hier_$variable $value" -- persistent --expect hier --starts 5
done
for window in 4k 64k; do
    case_ "nonblocking-parts-$window" ranks=4 node_size=2 mca="coll_hier_staging_window $window" -- nonblocking --expect hier --large 4
    case_ "persistent-parts-$window" ranks=4 node_size=2 mca="coll_hier_staging_window $window" -- persistent --expect hier --starts 3
done
for shape in "2 0 64" "2 1 64" "4 2"; do
    read -r ranks size cores <<<"$shape"
    thread="coll_hier_progress_thread 1"
    case_ "nonblocking-progress-$ranks-by-$size" ranks="$ranks" node_size="$size" cores="$cores" mca="$thread" \
        -- nonblocking --expect hier --large 4
    case_ "persistent-progress-$ranks-by-$size" ranks="$ranks" node_size="$size" cores="$cores" mca="$thread" \
        -- persistent --expect hier --starts 3
    case_ "gpu-nonblocking-progress-$ranks-by-$size" set="$([[ $size == 0 ]] && echo default || echo all)" ranks="$ranks" \
        node_size="$size" gpu=20 mca="$thread" -- gpu_nonblocking --expect hier --large 1
done
case_ small-attention ranks=2 mca="coll_hier_min_bytes 1" -- attention --expect hier
case_ nonblocking-unattended ranks=4 node_size=2 mca="coll_hier_progress_thread 1" -- unattended --expect hier
for shape in "2 0" "3 2"; do
    read -r ranks size <<<"$shape"
    case_ "nonblocking-threads-$ranks-by-$size" ranks="$ranks" node_size="$size" -- nonblocking --expect hier --large 1 --threads 4
done

# Counts and displacements beyond an int. A block of 2^31 bytes is memory in a small part only, but takes seconds to copy.
for shape in "2 0 default" "4 2 default" "3 1 all" "1 0 all"; do
    read -r ranks size set <<<"$shape"
    case_ "large-counts-$ranks-by-$size" set="$set" ranks="$ranks" node_size="$size" -- large_counts --expect hier --blocks 24
done
case_ large-counts-parts ranks=3 node_size=2 mca="coll_hier_staging_window 64k" -- large_counts --expect hier --blocks 24
case_ large-counts-fallback ranks=3 node_size=2 mca="coll_hier_min_bytes 1000000000000" \
    -- large_counts --expect fallback --blocks 24
case_ large-counts-fallback-2-31 set=all ranks=2 limit=300 mca="coll_hier_min_bytes 1000000000000" \
    -- large_counts --expect fallback --blocks 31
case_ large-counts-2-31 ranks=2 limit=300 -- large_counts --expect hier --blocks 31
case_ large-counts-2-31-apart set=all ranks=2 node_size=1 limit=300 -- large_counts --expect hier --blocks 31

# Mixed calls of four threads on two communicators. The pool of staging memory would pass for a leak.
kept="coll_hier_staging_kept 512k"
for shape in "2 0" "4 2"; do
    read -r ranks size <<<"$shape"
    case_ "stress-$ranks-by-$size" ranks="$ranks" node_size="$size" mca="$kept" -- stress --expect hier --calls 3000
    case_ "stress-long-$ranks-by-$size" set=all limit=600 ranks="$ranks" node_size="$size" mca="$kept" \
        -- stress --expect hier --calls 100000
done
case_ stress-progress ranks=2 mca="$kept coll_hier_progress_thread 1" -- stress --expect hier --calls 2000 --seed 2

for shape in "1 0" "2 0" "3 2" "4 2" "7 3"; do
    read -r ranks size <<<"$shape"
    case_ "datatypes-$ranks-by-$size" ranks="$ranks" node_size="$size" -- datatypes --expect hier
done
# Large calls go part by part. With a small window, calls of any size do.
for window in 4k 64k; do
    case_ "datatypes-parts-$window" ranks=4 node_size=2 mca="coll_hier_staging_window $window" \
        -- datatypes --expect hier --scales 40,600
    case_ "exact-parts-$window" ranks=4 node_size=2 mca="coll_hier_staging_window $window" \
        -- exact --expect hier --sizes 1,4097,70001,262147 --calls 20
done
case_ exact-parts-ring ranks=3 node_size=1 mca="coll_hier_staging_window 64k coll_hier_inter ring coll_hier_chunk_bytes 5000" \
    -- exact --expect hier
case_ "datatypes-parts-{2,1}" layout=2,1 order=cyclic mca="coll_hier_staging_window 4k" -- datatypes --expect hier
# The memory of large calls. --all has the sizes of which the documents speak.
case_ memory-4-by-2 ranks=4 node_size=2 mca="coll_hier_staging_window 4m coll_hier_staging_kept 8m" \
    -- memory --expect hier --mib 40 --during 12 --after 12
case_ memory-real-4-by-0 set=all ranks=4 -- memory --expect hier --communicators 4
case_ memory-real-4-by-2 set=all ranks=4 node_size=2 -- memory --expect hier --communicators 4
case_ datatypes-shm ranks=4 node_size=2 mca="coll_hier_intra shm" -- datatypes --expect hier
case_ "datatypes-{2,3,1}" layout=2,3,1 order=cyclic -- datatypes --expect hier

for shape in "1 0" "2 1" "4 2" "5 2" "9 4"; do
    read -r ranks size <<<"$shape"
    case_ "others-$ranks-by-$size" ranks="$ranks" node_size="$size" -- others --expect hier
done
case_ "others-{3,1}" layout=3,1 order=reversed -- others --expect hier
# HAN of Open MPI 4.1 gives such communicators up in the middle of a call.
for layout in 1,1 2,1; do
    case_ "others-on-han-{$layout}" layout="$layout" mca="coll_han_priority 40 coll_hier_providers han,tuned,basic,libnbc,inter,self" \
        -- others --expect hier
done

case_ lifetime-4-by-2 ranks=4 node_size=2 shm=private limit=150 -- lifetime --expect hier
case_ lifetime-3-by-0 ranks=3 shm=private limit=150 -- lifetime --expect hier --count 200
case_ no-dev-shm fault="/dev/shm is full | a /dev/shm of 16 KiB | anonymous memory serves; right results" \
    ranks=4 node_size=2 shm=16k mca="coll_hier_intra shm btl tcp,self btl_tcp_if_include lo" -- exact --expect hier
case_ lifetime-shm ranks=4 node_size=2 shm=private mca="coll_hier_intra shm" limit=150 -- lifetime --expect hier --count 200
case_ "lifetime-{3,1}" layout=3,1 limit=150 -- lifetime --expect hier --count 100
case_ starved ranks=2 mca="pml ob1 btl tcp,self btl_tcp_if_include lo" -- starved --expect hier
case_ threads-4-by-2 ranks=4 node_size=2 -- threads --expect hier
case_ threads-2-by-0 ranks=2 -- threads --expect hier --threads 4
case_ absent-2-by-1 ranks=2 node_size=1 -- absent --expect hier
case_ absent-4-by-2 ranks=4 node_size=2 mca="coll_hier_inter direct coll_hier_chunk_bytes 65536" -- absent --expect hier
case_ absent-ring ranks=3 node_size=1 mca="coll_hier_inter ring" -- absent --expect hier
case_ absent-shm ranks=3 mca="coll_hier_intra shm" -- absent --expect hier
case_ "absent-{2,1}" layout=2,1 -- absent --expect hier
for shape in "3 0" "4 2"; do
    read -r ranks size <<<"$shape"
    case_ "small-$ranks-by-$size" ranks="$ranks" node_size="$size" mca="coll_hier_min_bytes 0" -- small --expect hier
done
# With MPI_THREAD_MULTIPLE no call of a node is too small.
case_ small-among-threads ranks=2 mca="coll_hier_min_bytes 0 coll_hier_verbose 1" says="2 ranks on 1 node" \
    never="less than what the cost model finds worth it" -- fuzz --threads 3 --cases 20
case_ mappings-4-by-2 ranks=4 node_size=2 -- mappings --expect hier
case_ "mappings-{2,1}" layout=2,1 -- mappings --expect hier
case_ mappings-shm ranks=3 mca="coll_hier_intra shm" -- mappings --expect hier
case_ connections-ring ranks=8 node_size=1 mca="coll_hier_inter ring" -- connections --expect hier --sockets 5
case_ connections-direct ranks=8 node_size=1 mca="coll_hier_inter direct" -- connections --expect hier --sockets 5 --more 1
case_ setup-cost-8-by-4 ranks=8 node_size=4 -- setup_cost --expect hier

# Random cases. The second argument is the share of all random cases, in thousandths. --case runs one of them alone.
fuzz() { # fuzz NAME SHARE KEY=VALUE... -- PROGRAM ARGUMENT...
    local name=fuzz-$1 cases=$((${fuzz_cases:?} * $2 / 1000))
    shift 2
    case_ "$name" limit=$((100 + cases / 10)) "$@" --called "$name" --seed "${fuzz_seed:?}" --cases "$cases"
}

fuzz 4-by-0 101 ranks=4 -- fuzz --expect hier
# With a core each: two ranks lend blocks, a few put small results through shared memory, and eight put all.
fuzz own-cores-2 20 ranks=2 cores=2 -- fuzz --expect hier
fuzz own-cores-2-requests 10 ranks=2 cores=64 -- fuzz --expect hier --call nonblocking,persistent
fuzz own-cores-3 30 ranks=3 cores=3 -- fuzz --expect hier
fuzz own-cores-8 10 ranks=8 cores=8 -- fuzz --expect hier
fuzz 4-by-2 110 ranks=4 node_size=2 -- fuzz --expect hier
fuzz "{3,1}" 80 layout=3,1 -- fuzz --expect hier
fuzz 5-by-1 60 ranks=5 node_size=1 -- fuzz --expect hier
fuzz shm 110 ranks=3 mca="coll_hier_intra shm" -- fuzz --expect hier
fuzz ring 80 ranks=3 node_size=1 mca="coll_hier_inter ring" -- fuzz --expect hier
fuzz bundles 60 ranks=4 node_size=2 mca="coll_hier_inter bundles" -- fuzz --expect hier
fuzz small-chunks 40 ranks=4 node_size=2 mca="coll_hier_chunk_bytes 5000 coll_hier_depth 1" -- fuzz --expect hier
fuzz chosen 60 ranks=4 node_size=2 mca="coll_hier_min_bytes 0" -- fuzz
fuzz threads 100 ranks=2 -- fuzz --expect hier --threads 3
fuzz threads-3-by-2 35 ranks=3 node_size=2 -- fuzz --expect hier --threads 2
# Nonblocking and persistent calls alone.
fuzz requests 25 ranks=4 node_size=2 -- fuzz --expect hier --call nonblocking,persistent
fuzz requests-4-by-0 15 ranks=4 -- fuzz --expect hier --call nonblocking,persistent
fuzz "requests-{2,1}" 10 layout=2,1 -- fuzz --expect hier --call nonblocking,persistent
fuzz requests-progress 10 ranks=4 node_size=2 mca="coll_hier_progress_thread 1" -- fuzz --expect hier --call nonblocking,persistent
fuzz requests-progress-threads 10 ranks=2 cores=64 mca="coll_hier_progress_thread 1" \
    -- fuzz --expect hier --threads 3 --call nonblocking
fuzz requests-threads 10 ranks=2 -- fuzz --expect hier --threads 3 --call nonblocking,persistent
fuzz requests-gpu 2 ranks=3 node_size=2 gpu=20 -- gpu_fuzz --expect hier --call nonblocking,persistent
fuzz requests-gpu-shared 2 ranks=3 gpu=20 devices=2 -- gpu_fuzz --expect hier --call nonblocking,persistent
fuzz requests-gpu-cuda 2 ranks=3 node_size=2 gpu=20 runtime=cuda -- gpu_fuzz --expect hier --call nonblocking,persistent
fuzz gpu 7 ranks=3 node_size=2 gpu=20 -- gpu_fuzz --expect hier
fuzz gpu-balanced 1 ranks=4 gpu=20 mca="coll_hier_link_rate 0.001" -- gpu_fuzz --expect hier --call allgatherv,iallgatherv,allgatherv_init
fuzz gpu-cuda-balanced 1 ranks=5 gpu=20 runtime=cuda mca="coll_hier_link_rate 0.001" \
    -- gpu_fuzz --expect hier --call allgatherv,iallgatherv,allgatherv_init
fuzz gpu-gdr 4 ranks=3 node_size=2 gpu=20 gdr=all mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0" \
    -- gpu_fuzz --expect hier
fuzz gpu-shared 4 ranks=3 gpu=20 devices=2 -- gpu_fuzz --expect hier
fuzz gpu-kernels 3 ranks=3 gpu=20 devices=2 kernels=1 -- gpu_fuzz --expect hier
fuzz gpu-kernels-late 1 ranks=3 gpu=200 kernels=1 -- gpu_fuzz --expect hier --largest 30000
fuzz gpu-chunks-by-kernels 2 ranks=6 node_size=3 gpu=20 kernels=1 mca="coll_hier_chunk_bytes 20000" -- gpu_fuzz --expect hier
fuzz gpu-cuda-chunks-by-kernels 2 ranks=6 node_size=3 gpu=20 runtime=cuda kernels=1 mca="coll_hier_chunk_bytes 20000" \
    -- gpu_fuzz --expect hier
fuzz gpu-cuda-chunks-by-kernels-gdr 2 ranks=4 node_size=3 gpu=20 runtime=cuda kernels=1 gdr=all \
    mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0" -- gpu_fuzz --expect hier
fuzz gpu-cpu-access 4 ranks=3 gpu=100 bar=1 mca="coll_hier_gpu_cpu_access 1" -- gpu_fuzz --expect hier
fuzz requests-gpu-cpu-access 1 ranks=3 gpu=50 bar=1 devices=2 kernels=1 mca="coll_hier_gpu_cpu_access 1" \
    -- gpu_fuzz --expect hier --call nonblocking,persistent
# Blocks that no CPU moves would take most of the time here, at 100 us for each piece of a datatype.
fuzz gpu-cpu-access-gdrcopy 2 ranks=3 gpu=100 least=100 runtime=cuda gdrcopy=1 mca="coll_hier_gpu_cpu_access 1" \
    -- gpu_fuzz --expect hier --largest 30000
fuzz gpu-cuda 4 ranks=3 node_size=2 gpu=20 runtime=cuda -- gpu_fuzz --expect hier
fuzz gpu-cuda-gdr 4 ranks=3 node_size=2 gpu=20 runtime=cuda gdr=all \
    mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0" -- gpu_fuzz --expect hier
case_ fuzz-notices-a-wrong-bit ranks=2 status=error says="alone: fuzz --seed 3 --expect hier --case 17" \
    -- fuzz --expect hier --seed 3 --cases 30 --corrupt 17
case_ fuzz-runs-a-case-alone ranks=2 status=error says="case 17, rank 0: allgather of .*: receive buffer, byte 64 before" \
    -- fuzz --expect hier --seed 3 --case 17 --corrupt 17 --call allgather
case_ fuzz-runs-an-allgatherv-alone ranks=2 status=error says="case 17, rank 0: allgatherv .*: receive buffer, byte 64 before" \
    -- fuzz --expect hier --seed 3 --case 17 --corrupt 17 --call allgatherv
case_ fuzz-runs-a-batch-alone ranks=2 coll=^hier status=error \
    says="case 17, rank 0: 0: allgatherv?_init .*: operation [0-9], receive buffer, byte 64 before" \
    -- fuzz --expect none --seed 3 --case 17 --corrupt 17 --call persistent
# The programs alone, with what Open MPI has.
case_ fuzz-without-hier ranks=4 coll=^hier -- fuzz --expect none --cases 200 --call nonblocking,persistent

# ---- GPU memory, on a simulated runtime, where the CPU cannot reach it
turn=0
for shape in "1 0" "2 0" "3 0" "4 2" "5 2" "6 2" "7 3" "8 3"; do
    read -r ranks size <<<"$shape"
    one_is=$([[ $shape == [567]* ]] && echo all) with_algorithms "gpu-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 \
        -- gpu --expect hier --meetings $((ranks > 4 ? 5 : 36)) --large $((ranks < 5))
done
# gdr: the network reads and writes device memory, on all ranks or on the odd ones. The other ranks stage their memory.
turn=0
for shape in "4 2" "3 2" "3 1"; do
    read -r ranks size <<<"$shape"
    case_ "gpu-gdr-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 gdr=all \
        mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_verbose 1 coll_hier_inter ${inter[turn % 3]}" \
        says="UCX tcp on [^,]*, device memory directly" \
        -- gpu --expect hier --meetings 5 --large 1 --gdr 1
    case_ "gpu-gdr-on-some-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 gdr=odd \
        mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_inter ${inter[turn % 3]}" \
        says="coll_hier_gpu_direct is on, but UCX does not know ROCm memory" \
        -- gpu --expect hier --meetings 5 --large 1 --gdr 2
    ((turn++))
done
for which in all odd; do
    case_ "gpu-gdr-bundles-$which" ranks=4 node_size=2 gpu=20 gdr="$which" \
        mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_inter bundles" \
        -- gpu --expect hier --meetings 5 --large 1 --gdr $([[ $which == all ]] && echo 1 || echo 2)
done
# CUDA's module, on a simulated CUDA.
for shape in "1 0" "2 0" "4 2"; do
    read -r ranks size <<<"$shape"
    case_ "gpu-cuda-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 runtime=cuda \
        -- gpu --expect hier --meetings $((ranks > 2 ? 5 : 36)) --large 1
done
while IFS=: read -r refused line; do
    case_ "gpu-cuda-without-$refused" ranks=4 node_size=2 gpu=20 runtime=cuda refuses="$refused" \
        mca="coll_hier_verbose 1" says="$line" -- gpu --expect hier --meetings 5 --large 1
done <<'END'
batches:CUDA refuses copies in batches
registering:CUDA: registering host memory
mapping:CUDA: mapping a peer's memory
addresses:
graphs:CUDA refuses a copy as a graph
END
# Small blocks reach their place in the receive buffer by prepared copies, before and after the copies to peers.
for ranks in 2 4; do
    case_ "gpu-cuda-prepared-$ranks" directory=bench ranks="$ranks" gpu=20 runtime=cuda refuses=unprepared \
        -- allgather --sizes 1,70001,1m,4m,3m,70001 --iterations 3 --validate all --memory device
done
case_ gpu-cuda-without-peers ranks=3 gpu=20 runtime=cuda mca="coll_hier_gpu_peers off" \
    -- gpu --expect hier --meetings 5 --large 1 --mappings 0
case_ gpu-cuda-links-one-by-one ranks=3 gpu=20 runtime=cuda gpu_links=direct mca="coll_hier_verbose 1" \
    says="GPUs are linked one by one: copies to all peers at once" -- gpu --expect hier --meetings 1 --large 1
# A rank whose buffers are in host memory publishes small blocks, beside ranks that do not.
case_ gpu-host-memory ranks=3 gpu=20 mca="coll_hier_verbose 1" says="bytes a rank: published inside the node" \
    -- gpu --expect hier --meetings 36 --large 1
case_ gpu-cuda-host-memory-4-by-2 ranks=4 node_size=2 gpu=20 runtime=cuda mca="coll_hier_verbose 1" \
    says="published inside a node" -- gpu --expect hier --meetings 5 --large 1
# Ranks that share GPUs publish small blocks.
case_ gpu-shared-4-by-0 ranks=4 gpu=20 devices=1 -- gpu --expect hier --meetings 12 --large 1
case_ gpu-shared-5-by-0 set=all ranks=5 gpu=20 devices=2 -- gpu --expect hier --meetings 5 --large 1
case_ gpu-shared-datatypes ranks=3 gpu=2 devices=1 -- gpu_datatypes --expect hier --one-node 1
case_ gpu-shared-late ranks=3 gpu=20 devices=1 -- gpu_late --expect hier
case_ gpu-shared-lifetime ranks=3 gpu=20 devices=1 -- gpu_lifetime --expect hier
case_ gpu-shared-faults ranks=3 gpu=5 devices=1 mca="coll_hier_timeout 5" -- gpu_faults --victim 1 --step 3
case_ gpu-cuda-shared-4-by-0 ranks=4 gpu=20 devices=1 runtime=cuda mca="coll_hier_verbose 1" \
    says="4097 bytes a rank: published inside the node" -- gpu --expect hier --meetings 5 --large 1
case_ gpu-cuda-shared-in-turns ranks=4 gpu=20 devices=1 runtime=cuda refuses=mps mca="coll_hier_verbose 1" \
    says="262144 bytes a rank: published inside the node" directory=bench \
    -- allgather --sizes 1,16,4k,65537,256k,1m --iterations 5 --validate all --memory device --in-place
# MPI_Allgatherv on memory of every kind.
few=(gpu_allgatherv --expect hier --scales "900,40001" --spreads few --calls 20)
case_ gpu-allgatherv-3-by-0 ranks=3 gpu=20 -- "${few[@]}"
case_ gpu-allgatherv-3-by-2 ranks=3 node_size=2 gpu=20 -- "${few[@]}"
case_ gpu-allgatherv-shm set=all ranks=4 node_size=2 gpu=20 mca="coll_hier_intra shm coll_hier_inter bundles" -- "${few[@]}"
case_ gpu-allgatherv-ring set=all ranks=3 node_size=1 gpu=20 mca="coll_hier_inter ring" -- "${few[@]}"
case_ gpu-allgatherv-shared set=all ranks=3 gpu=20 devices=1 -- "${few[@]}"
case_ gpu-allgatherv-kernels ranks=3 gpu=20 devices=2 kernels=1 -- "${few[@]}"
case_ gpu-allgatherv-parts ranks=3 node_size=2 gpu=20 mca="coll_hier_staging_window 64k" -- "${few[@]}"
case_ gpu-allgatherv-gdr ranks=3 node_size=2 gpu=20 gdr=all mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0" -- "${few[@]}"
case_ gpu-allgatherv-gdr-on-some set=all ranks=3 node_size=1 gpu=20 gdr=odd \
    mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_inter ring" -- "${few[@]}"
case_ gpu-allgatherv-round ranks=4 gpu=20 mca="coll_hier_link_rate 0.001" -- "${few[@]}"
case_ gpu-allgatherv-balanced ranks=4 gpu=20 mca="coll_hier_link_rate 0.001" \
    -- gpu_allgatherv --expect hier --scales 7001 --spreads few --calls 20
case_ gpu-cuda-allgatherv-balanced ranks=4 gpu=20 devices=2 kernels=1 runtime=cuda mca="coll_hier_link_rate 0.001" \
    -- gpu_allgatherv --expect hier --scales 7001 --spreads few --calls 20
case_ gpu-cuda-allgatherv-carried ranks=4 node_size=2 gpu=20 runtime=cuda mca="coll_hier_link_rate 0.001" -- "${few[@]}"
case_ gpu-allgatherv-fallback ranks=3 gpu=20 mca="coll_hier_min_bytes 1000000000" \
    -- gpu_allgatherv --expect fallback --scales 900 --spreads few --calls 10
case_ gpu-allgatherv-4-by-2 set=all ranks=4 node_size=2 gpu=20 -- "${few[@]}"
case_ gpu-cuda-allgatherv-3-by-0 set=all ranks=3 gpu=20 runtime=cuda -- "${few[@]}"
case_ gpu-cuda-allgatherv-3-by-2 ranks=3 node_size=2 gpu=20 runtime=cuda -- "${few[@]}"
case_ gpu-cuda-allgatherv-kernels set=all ranks=3 gpu=20 devices=2 runtime=cuda kernels=1 -- "${few[@]}"
case_ gpu-cuda-allgatherv-gdr ranks=3 node_size=2 gpu=20 runtime=cuda gdr=all \
    mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0" -- "${few[@]}"
for way in "2-by-0 default 2 0" "3-by-2 all 3 2" "shared all 3 0 devices=2" "kernels all 3 0 devices=2 kernels=1" \
    "cuda default 3 2 runtime=cuda"; do
    read -r name set ranks size more <<<"$way"
    read -ra keys <<<"$more"
    where=(ranks="$ranks" node_size="$size" gpu=20 "${keys[@]}")
    case_ "gpu-nonblocking-$name" set="$set" "${where[@]}" -- gpu_nonblocking --expect hier --large 1
    case_ "gpu-persistent-$name" set=all "${where[@]}" -- gpu_persistent --expect hier --starts 3
done
case_ gpu-persistent ranks=2 gpu=20 -- gpu_persistent --expect hier --starts 2
for name in parts gdr; do
    where=(ranks=3 node_size=2 gpu=20)
    [[ $name == gdr ]] && where+=(gdr=all mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0") ||
        where+=(mca="coll_hier_staging_window 64k")
    case_ "gpu-nonblocking-$name" "${where[@]}" -- gpu_nonblocking --expect hier --large 1
    case_ "gpu-persistent-$name" set=all "${where[@]}" -- gpu_persistent --expect hier --starts 3
done
case_ ulfm-nonblocking-messages ulfm=yes ranks=4 mca="coll_hier_min_bytes 100000000" limit=60 \
    -- ulfm --mode inside --after 3000 --call iallgather
# The other blocking collectives, which go through memory of the host.
for ranks in 1 2 5; do
    case_ "gpu-others-$ranks-ranks" ranks="$ranks" gpu=5 mca="coll_hier_verbose 1" says="device memory goes through memory of the host" \
        -- gpu_others --rounds 6 --seed "$ranks"
done
# As stress, on device memory.
case_ gpu-stress ranks=2 gpu=5 mca="$kept" -- gpu_stress --expect hier --calls 2000
case_ gpu-cuda-stress set=all ranks=3 node_size=2 gpu=5 runtime=cuda mca="$kept" -- gpu_stress --expect hier --calls 2000
case_ gpu-others-4-by-2 ranks=4 node_size=2 gpu=5 -- gpu_others --rounds 6 --seed 11
case_ gpu-cuda-others ranks=3 gpu=5 runtime=cuda -- gpu_others --rounds 4 --seed 12
# Small blocks by kernels. Ranks that share a real GPU use them under MPS only.
has_kernels() { [[ -z $gpus || -n ${CUDA_MPS_PIPE_DIRECTORY:-} ]]; }
has_kernels && case_ gpu-kernels-5-by-0 ranks=5 gpu=20 kernels=1 mca="coll_hier_verbose 1" says="rails, kernels, copy engines" \
    -- gpu --expect hier --meetings 5 --large 1
[[ -n $gpus ]] || case_ gpu-kernels-2-by-0 ranks=2 gpu=20 kernels=1 mca="coll_hier_verbose 1" says="rails, kernels, copy engines" \
    -- gpu --expect hier --meetings 5 --large 1
has_kernels && case_ gpu-kernels-shared-4-by-0 ranks=4 gpu=20 devices=1 kernels=1 mca="coll_hier_verbose 1" \
    says="rails, kernels, copy engines" -- gpu --expect hier --meetings 12 --large 1
# The same call again and again, by kernels that are kept ready: small blocks, and middle ones. Middle blocks go to all
# peers by one kernel only if all peers are in the call in time, so few launches are the same.
again=(ranks=4 gpu=5 kernels=1 runtime=cuda directory=bench)
blocks=(allgather --validate all --memory device)
if [[ -z $gpus ]]; then
    case_ gpu-cuda-kernels-again "${again[@]}" devices=1 mca="coll_hier_min_bytes 1" by_graphs=15 \
        -- "${blocks[@]}" --sizes 1,3000 --iterations 20
    case_ gpu-cuda-kernels-in-turns "${again[@]}" devices=1 mca="coll_hier_min_bytes 1" by_graphs=60 \
        -- "${blocks[@]}" --sizes 1,3000 --iterations 100 --buffers 20
    case_ gpu-cuda-kernels-again-refused "${again[@]}" devices=1 refuses=graphs mca="coll_hier_min_bytes 1 coll_hier_verbose 1" \
        says="CUDA refuses a kernel that is kept ready" -- "${blocks[@]}" --sizes 1,3000 --iterations 20
    case_ gpu-cuda-fan-outs-again "${again[@]}" devices=4 by_graphs=1 -- "${blocks[@]}" --sizes 300k --iterations 300
    case_ gpu-cuda-fan-outs-in-turns ranks=2 gpu=5 kernels=1 runtime=cuda directory=bench devices=2 by_graphs=60 \
        -- "${blocks[@]}" --sizes 300k --iterations 100 --buffers 20
fi
# Small blocks by the CPU. Copies take so long that the trial finds the CPU quicker.
by_cpu="coll_hier_gpu_cpu_access 1 coll_hier_min_bytes 1 coll_hier_verbose 1"
case_ gpu-cpu-access-3-by-0 ranks=3 gpu=500 bar=1 least=500 mca="$by_cpu" says="CPU for blocks of up to [0-9]+ bytes, copy engines" \
    -- gpu --expect hier --meetings 8 --large 1
case_ gpu-cpu-access-kernels ranks=4 gpu=500 bar=1 least=500 devices=2 kernels=1 mca="$by_cpu" \
    says="CPU for blocks of up to [0-9]+ bytes, kernels, copy engines" -- gpu --expect hier --meetings 8 --large 1
case_ gpu-cpu-access-counters ranks=3 gpu=500 bar=1 mca="$by_cpu" -- gpu_counters --path published --bytes 1000
case_ gpu-cpu-access-allgatherv ranks=3 gpu=100 bar=1 mca="$by_cpu" -- "${few[@]}"
case_ gpu-cpu-access-lifetime ranks=3 gpu=100 bar=1 mca="$by_cpu" -- gpu_lifetime --expect hier
case_ gpu-cpu-access-late ranks=3 gpu=100 bar=1 mca="$by_cpu" -- gpu_late --expect hier
case_ gpu-cpu-access-nonblocking ranks=3 gpu=100 bar=1 mca="$by_cpu" -- gpu_nonblocking --expect hier --large 1
case_ gpu-cpu-access-progress ranks=3 gpu=100 bar=1 mca="$by_cpu coll_hier_progress_thread 1" \
    -- gpu_nonblocking --expect hier --large 1
case_ gpu-cpu-access-persistent ranks=3 gpu=20 bar=1 mca="$by_cpu" -- gpu_persistent --expect hier --starts 2
case_ gpu-cpu-access-on-two-nodes ranks=3 node_size=2 gpu=20 bar=1 mca="$by_cpu" never="CPU for blocks" \
    -- gpu --expect hier --meetings 1 --large 0
case_ gpu-cpu-access-off ranks=3 gpu=20 bar=1 mca="coll_hier_verbose 1" never="CPU for blocks|the CPU moves" \
    -- gpu --expect hier --meetings 1 --large 0
case_ gpu-cpu-access-of-one ranks=3 gpu=20 bar=1 odd=OMPI_MCA_coll_hier_gpu_cpu_access=1 mca="coll_hier_verbose 1" \
    never="CPU for blocks" -- gpu --expect hier --meetings 1 --large 0
case_ gpu-cpu-access-missed ranks=2 gpu=20 bar=3 mca="$by_cpu" says="CPU moves no blocks of its memory: copies miss what" \
    -- gpu --expect hier --meetings 1 --large 0
# The same on CUDA, by GDRCopy.
gdrcopy=(ranks=3 runtime=cuda gdrcopy=1 mca="$by_cpu" never="pins are left")
case_ gpu-cpu-access-gdrcopy-3-by-0 "${gdrcopy[@]}" gpu=500 least=500 says="CPU for blocks of up to [0-9]+ bytes, copy engines" \
    -- gpu --expect hier --meetings 8 --large 1
case_ gpu-cpu-access-gdrcopy-kernels "${gdrcopy[@]}" ranks=4 gpu=500 least=500 devices=2 kernels=1 \
    says="CPU for blocks of up to [0-9]+ bytes, kernels, copy engines" -- gpu --expect hier --meetings 8 --large 1
case_ gpu-cpu-access-gdrcopy-counters "${gdrcopy[@]}" gpu=500 least=500 -- gpu_counters --path published --bytes 1000
case_ gpu-cpu-access-gdrcopy-lifetime "${gdrcopy[@]}" gpu=100 least=100 leaves=anything -- gpu_lifetime --expect hier
case_ gpu-cpu-access-gdrcopy-nonblocking "${gdrcopy[@]}" gpu=100 least=100 -- gpu_nonblocking --expect hier --large 1
case_ gpu-cpu-access-gdrcopy-refused "${gdrcopy[@]}" gpu=20 refuses=pins says="it does not reach that memory: GDRCopy cannot pin it" \
    -- gpu --expect hier --meetings 1 --large 0
case_ gpu-cpu-access-gdrcopy-missing ranks=2 gpu=20 runtime=cuda mca="$by_cpu" \
    says="CPU moves no blocks of its memory: it does not reach that memory: .*(libgdrapi|GDRCopy)" -- gpu --expect hier --meetings 1 --large 0
case_ gpu-counters-copies ranks=3 gpu=20 mca="coll_hier_min_bytes 1" -- gpu_counters --path copies --mappings 2
case_ gpu-counters-mapped ranks=3 gpu=20 mca="coll_hier_min_bytes 1" \
    -- gpu_counters --path copies --mappings 2 --memory mapped
case_ gpu-counters-published ranks=3 gpu=20 devices=1 mca="coll_hier_min_bytes 1" -- gpu_counters --path published --bytes 1000
case_ gpu-counters-kernels ranks=3 gpu=20 kernels=1 mca="coll_hier_min_bytes 1" \
    -- gpu_counters --path kernels --first published --bytes 1000 --mappings 2
# On several nodes a kernel pushes each chunk that has arrived: 16 in a call, of 15 calls.
chunks="coll_hier_inter direct coll_hier_chunk_bytes 65536 coll_hier_eager_bytes 0 coll_hier_min_bytes 1 coll_hier_verbose 1"
if [[ -z $gpus ]]; then
    # Two ranks with a GPU each: a kernel pushes the block to the peer, in each of 15 calls.
    for runtime in rocm cuda; do
        case_ "gpu-counters-fan-outs-of-two-$runtime" ranks=2 gpu=20 runtime="$runtime" kernels=1 mca="coll_hier_min_bytes 1" \
            -- gpu_counters --path kernels --bytes 524288 --mappings 1 --fan-outs 15
    done
    for runtime in rocm cuda; do
        where=(ranks=9 node_size=3 gpu=20 runtime="$runtime" kernels=1 says="kernels for chunks, .* KiB by kernels")
        case_ "gpu-chunks-by-kernels-$runtime" "${where[@]}" gdr=all mca="$chunks coll_hier_gpu_direct on" \
            -- gpu_counters --path direct --bytes 524288 --mappings 2 --fan-outs 60
        case_ "gpu-chunks-by-kernels-$runtime-bounced" "${where[@]}" mca="$chunks" \
            -- gpu_counters --path direct --bytes 524288 --mappings 2 --fan-outs 60
    done
    case_ gpu-chunks-too-large ranks=6 node_size=3 gpu=20 kernels=1 mca="${chunks/65536/600000}" \
        says="kernels for chunks, copy engines" -- gpu_counters --path direct --bytes 1200000 --mappings 2
    # Kernels take the blocks that begin at a multiple of 4, and copies to the same peers overtake them where they can. A
    # signal out of its order would tell of bytes too early.
    for runtime in rocm cuda; do
        case_ "gpu-chunks-mixed-$runtime" ranks=9 node_size=3 gpu=3000 runtime="$runtime" kernels=1 gdr=all directory=bench \
            mca="${chunks/65536/1000000} coll_hier_gpu_direct on" says="kernels for chunks, copy engines" \
            -- allgather --sizes 90001 --iterations 5 --validate all --memory device
    done
    # Chunks of any size go by kernels where ranks share GPUs.
    case_ gpu-chunks-on-shared-gpus ranks=6 node_size=3 gpu=20 devices=2 kernels=1 mca="${chunks/65536/600000}" \
        says="kernels for chunks, .*, all chunks by kernels" \
        -- gpu_counters --path direct --bytes 1200000 --mappings 2 --fan-outs 30
    case_ gpu-chunks-of-two-on-shared-gpus ranks=4 node_size=2 gpu=20 devices=1 kernels=1 mca="${chunks/65536/600000}" \
        says="kernels for chunks, .*, all chunks by kernels" \
        -- gpu_counters --path direct --bytes 1200000 --mappings 1 --fan-outs 30
    case_ gpu-chunks-of-two ranks=4 node_size=2 gpu=20 kernels=1 mca="$chunks" never="kernels for chunks" \
        -- gpu_counters --path direct --bytes 524288 --mappings 1
    case_ gpu-chunks-without-kernels ranks=6 node_size=3 gpu=20 kernels=1 mca="$chunks coll_hier_kernels 0" \
        never="kernels for chunks" -- gpu_counters --path direct --bytes 524288 --mappings 2
fi
# Kernels start late, and calls go without them meanwhile.
if [[ -z $gpus ]]; then
    busy="coll_hier_kernels 1 coll_hier_min_bytes 1"
    for runtime in rocm cuda; do
        case_ "gpu-busy-$runtime" ranks=3 gpu=1000 runtime="$runtime" kernels=1 mca="$busy" -- gpu_busy
    done
    case_ gpu-busy-faults ranks=3 gpu=500 kernels=1 mca="$busy coll_hier_timeout 5" \
        -- gpu_faults --victim 1 --in-place 1 --step 5
fi
case_ gpu-kernels-datatypes ranks=3 gpu=2 devices=1 kernels=1 -- gpu_datatypes --expect hier --one-node 1
case_ gpu-kernels-late ranks=3 gpu=20 devices=1 kernels=1 -- gpu_late --expect hier
case_ gpu-kernels-lifetime ranks=3 gpu=20 devices=2 kernels=1 -- gpu_lifetime --expect hier
case_ gpu-kernels-faults ranks=3 gpu=5 devices=1 kernels=1 mca="coll_hier_timeout 5" -- gpu_faults --victim 1 --step 3
case_ gpu-kernels-off ranks=3 gpu=20 devices=1 kernels=0 mca="coll_hier_kernels 0 coll_hier_verbose 1" never="rails, kernels, copy engines" \
    -- gpu --expect hier --meetings 1 --large 0
case_ gpu-kernels-bench directory=bench ranks=4 gpu=20 kernels=1 devices=2 \
    -- allgather --sizes 1,7,16,4k,65537,128k --iterations 5 --validate all --memory device
has_kernels && case_ gpu-cuda-kernels-4-by-0 ranks=4 gpu=20 devices=1 runtime=cuda kernels=1 mca="coll_hier_verbose 1" \
    says="rails, kernels, copy engines" -- gpu --expect hier --meetings 5 --large 1
case_ gpu-cuda-kernels-lifetime ranks=3 gpu=20 devices=2 runtime=cuda kernels=1 leaves=anything -- gpu_lifetime --expect hier
case_ gpu-cuda-kernels-refused ranks=3 gpu=20 devices=1 runtime=cuda kernels=1 refuses=kernels mca="coll_hier_verbose 1" \
    says="refuses the kernels of" -- gpu --expect hier --meetings 5 --large 1
case_ gpu-cuda-gdr ranks=4 node_size=2 gpu=20 runtime=cuda gdr=all \
    mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_verbose 1" says="UCX tcp on [^,]*, device memory directly" \
    -- gpu --expect hier --meetings 5 --large 1 --gdr 1
case_ gpu-cuda-lifetime ranks=4 node_size=2 gpu=20 runtime=cuda leaves=anything -- gpu_lifetime --expect hier
case_ gpu-cuda-datatypes ranks=3 gpu=2 runtime=cuda -- gpu_datatypes --expect hier --one-node 1
case_ gpu-cuda-capture ranks=2 gpu=20 runtime=cuda -- gpu_capture --expect hier
case_ gpu-cuda-late ranks=2 gpu=20 runtime=cuda -- gpu_late --expect hier
case_ gpu-gdr-lifetime ranks=4 node_size=2 gpu=20 gdr=all mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_chunk_bytes 5000" -- gpu_lifetime --expect hier
case_ gpu-gdr-auto ranks=4 node_size=2 gpu=20 gdr=all mca="coll_hier_verbose 1" \
    says="device memory through pinned memory \(tcp is no RDMA\)" -- gpu --expect hier --meetings 1 --large 0
# Large calls go part by part, where memory goes through bounce buffers.
case_ gpu-parts-4-by-2 ranks=4 node_size=2 gpu=20 mca="coll_hier_staging_window 64k" -- gpu --expect hier --meetings 5 --large 1
case_ gpu-parts-ring set=all ranks=3 node_size=1 gpu=20 mca="coll_hier_staging_window 64k coll_hier_inter ring" \
    -- gpu --expect hier --meetings 5 --large 1
case_ gpu-parts-bundles set=all ranks=5 node_size=2 gpu=20 mca="coll_hier_staging_window 64k coll_hier_inter bundles" \
    -- gpu --expect hier --meetings 5 --large 1
case_ gpu-datatypes-parts ranks=4 node_size=2 gpu=2 mca="coll_hier_staging_window 64k" -- gpu_datatypes --expect hier
case_ gpu-kept-4-by-2 ranks=4 node_size=2 gpu=0 mca="coll_hier_staging_window 4m coll_hier_staging_kept 8m" \
    -- gpu_kept --expect hier --mib 24 --most 8
case_ gpu-kept-real-2-by-1 set=all ranks=2 node_size=1 gpu=0 -- gpu_kept --expect hier --mib 244 --most 128
case_ gpu-slow-copies fault="device copies are slow | 2 ms for each | right results" \
    ranks=3 node_size=2 gpu=2000 -- gpu --expect hier --meetings 1 --large 0
case_ gpu-fallback-all ranks=4 node_size=2 gpu=20 mca="coll_hier_min_bytes 1000000000" -- gpu --expect fallback --meetings 3
case_ gpu-below-min ranks=3 node_size=2 gpu=20 mca="coll_hier_min_bytes 32768" \
    -- gpu --expect hier --min-bytes 32768 --meetings 5
for shape in "1 0" "3 0" "4 2" "5 3"; do
    read -r ranks size <<<"$shape"
    [[ $shape == [35]* ]] && set=all || set=default
    case_ "gpu-lifetime-$ranks-by-$size" set="$set" ranks="$ranks" node_size="$size" gpu=20 -- gpu_lifetime --expect hier
    case_ "gpu-datatypes-$ranks-by-$size" set="$set" ranks="$ranks" node_size="$size" gpu=2 \
        -- gpu_datatypes --expect hier --one-node $((size == 0 && ranks > 1))
done
case_ gpu-lifetime-shm set=all ranks=4 node_size=2 gpu=20 mca="coll_hier_intra shm" -- gpu_lifetime --expect hier
case_ gpu-datatypes-fallback ranks=3 gpu=2 mca="coll_hier_min_bytes 1000000000" -- gpu_datatypes --expect fallback
case_ gpu-huge set=all ranks=1 gpu=0 limit=240 -- gpu_datatypes --expect fallback --huge 1
case_ gpu-capture-2-by-0 set=all ranks=2 gpu=20 -- gpu_capture --expect hier
case_ gpu-capture-3-by-2 ranks=3 node_size=2 gpu=20 -- gpu_capture --expect hier
case_ gpu-late-3-by-0 set=all ranks=3 gpu=20 -- gpu_late --expect hier
case_ gpu-late-4-by-2 ranks=4 node_size=2 gpu=20 -- gpu_late --expect hier
case_ gpu-late-but-one ranks=4 node_size=3 gpu=20 -- gpu_late --expect hier --early 1
# Calls of HIP fail once on one rank: every seventh one, and all of them with --all. Every rank then gets an error or the
# right result.
[[ $set_wanted == all ]] && some=() || some=(--step 7)
for victim in 0 2; do
    case_ "gpu-faults-3-by-0-rank-$victim" fault="a call of the GPU runtime fails | every seventh one on one rank, in turn; with --all each | an error on every rank, or right results" \
        ranks=3 gpu=5 mca="coll_hier_timeout 5" -- gpu_faults --victim "$victim" "${some[@]}"
    case_ "gpu-faults-4-by-2-rank-$victim" fault="a call of the GPU runtime fails | every seventh one on one rank, in turn; with --all each | an error on every rank, or right results" \
        ranks=4 node_size=2 gpu=5 mca="coll_hier_timeout 5" -- gpu_faults --victim "$victim" "${some[@]}"
done
case_ gpu-faults-typed ranks=2 gpu=5 mca="coll_hier_timeout 5" -- gpu_faults --victim 1 --typed 1 "${some[@]}"
case_ gpu-failing-copies-typed ranks=2 gpu=50 mca="coll_hier_timeout 5" -- gpu_faults --typed 1 --async 1 --last 10
case_ gpu-faults-balanced ranks=4 gpu=5 mca="coll_hier_timeout 5 coll_hier_link_rate 0.001" -- gpu_faults --victim 1 --uneven 1 "${some[@]}"
case_ gpu-failing-copies-balanced ranks=4 gpu=50 mca="coll_hier_timeout 5 coll_hier_link_rate 0.001" \
    -- gpu_faults --uneven 1 --async 1 --last 10
case_ gpu-faults-shm ranks=3 gpu=5 mca="coll_hier_timeout 5 coll_hier_intra shm" -- gpu_faults --victim 1 "${some[@]}"
case_ gpu-failing-copies-3-by-0 fault="a device copy fails after its start | each of the first ones, in turn | an error on every rank, or right results" \
    ranks=3 gpu=50 mca="coll_hier_timeout 5" -- gpu_faults --async 1 --last 15
case_ gpu-failing-copies-4-by-2 fault="a device copy fails after its start | each of the first ones, in turn | an error on every rank, or right results" \
    ranks=4 node_size=2 gpu=50 mca="coll_hier_timeout 5" -- gpu_faults --victim 1 --async 1 --last 15
# In a call of the fallback module no rank can tell the others of a failure, so staging must get around each one.
case_ gpu-faults-fallback fault="a call of the GPU runtime fails in a call of the fallback module | each of them on one rank, in turn | right results" \
    ranks=3 gpu=5 mca="coll_hier_min_bytes 1000000000" -- gpu_faults --victim 1 --harmless 1
case_ gpu-failing-copies-fallback ranks=3 gpu=5 mca="coll_hier_min_bytes 1000000000" \
    -- gpu_faults --async 1 --last 15 --harmless 1
# A rank that cannot take part: there is no module for its runtime, it has no memory, or its copy does not end. In a team
# it gets an error, and the others do not wait for it. In a call of the fallback module the job ends.
for victim in 0 2; do
    case_ "gpu-without-module-rank-$victim" fault="the GPU module is missing on a rank | a directory without modules | an error on that rank; nobody waits for it" \
        ranks=4 node_size=2 gpu=5 modules=/nonexistent mca="coll_hier_timeout 5" \
        says="has loaded libamdhip64.so, but no module .*: /nonexistent/hier_gpu_rocm.so: cannot open" \
        -- gpu_unusable --expect hier --victim "$victim"
    case_ "gpu-without-module-fallback-rank-$victim" fault="the GPU module is missing in a call of the fallback module | a directory without modules | a line; the job ends" \
        ranks=3 gpu=5 modules=/nonexistent mca="coll_hier_min_bytes 1000000000" \
        says="no GPU runtime that works: hier_gpu_rocm.so: /nonexistent/hier_gpu_rocm.so: cannot open" status=abort \
        never="ended without" \
        -- gpu_unusable --expect fallback --victim "$victim"
done
case_ gpu-without-memory fault="no memory to stage device buffers for the fallback module | allocations fail | a line; the job ends" \
    ranks=3 gpu=5 mca="coll_hier_min_bytes 1000000000" \
    says="rank 1 cannot copy its device memory for MPI_Allgather of 16777216 bytes .* so the job ends" \
    status=abort never="ended without" -- gpu_unusable --expect fallback --victim 1 --memory 0
case_ gpu-hanging-copy-fallback ranks=3 gpu=5 leaves=pinned mca="coll_hier_min_bytes 1000000000 $fails_after 2" \
    says="rank 1 cannot copy its device memory for MPI_Allgather of 300007 bytes .* so the job ends" \
    status=abort never="ended without" -- gpu_unusable --expect fallback --victim 1 --hang 1

# ---- Set-up: components, algorithms, devices

# Ways to choose the component, and to leave it out.
case_ coll-priority ranks=4 node_size=2 coll=- mca="coll_hier_priority 95" -- exact --expect hier --sizes 1,4097
# (MPI_Exscan of coll/basic 4.1 crashes on one rank. With coll/self loaded it is not called there.)
case_ coll-hier-basic-libnbc ranks=4 node_size=2 coll=hier,basic,libnbc -- others --expect hier --exscan-alone 0
case_ coll-below-tuned ranks=4 coll=- mca="coll_hier_priority 20" -- exact --expect none --sizes 1,4097
case_ coll-priority-0 ranks=3 coll=- mca="coll_hier_priority 0" -- others --expect none
case_ coll-without-hier ranks=3 coll=^hier -- others --expect none
case_ fallback-all ranks=4 node_size=2 mca="coll_hier_min_bytes 1000000000" -- exact --expect fallback
case_ fallback-below-min ranks=4 node_size=2 mca="coll_hier_min_bytes 16388" \
    -- exact --expect hier --min-bytes 16388 --sizes 1,4096,4097,70001
case_ allgatherv-fallback-all ranks=4 node_size=2 mca="coll_hier_min_bytes 1000000000" -- allgatherv --expect fallback
case_ allgatherv-below-min ranks=4 node_size=2 mca="coll_hier_min_bytes 16388" \
    -- allgatherv --expect hier --min-bytes 16388
case_ nonblocking-fallback ranks=4 node_size=2 mca="coll_hier_min_bytes 1000000000" -- nonblocking --expect fallback --large 4
case_ persistent-fallback ranks=4 node_size=2 mca="coll_hier_min_bytes 1000000000" -- persistent --expect fallback --starts 3
case_ nonblocking-without-hier ranks=3 coll=^hier -- nonblocking --expect none --large 4 --threads 4
case_ persistent-without-hier ranks=3 coll=^hier -- persistent --expect none --starts 3
case_ wrapped-by-sync ranks=4 node_size=2 coll=- \
    mca="coll_hier_priority 90 coll_sync_priority 99 coll_sync_barrier_before 3" -- lifetime --expect hier --count 50

# hier says which path runs, and why.
case_ chosen-ring ranks=6 node_size=2 mca="coll_hier_verbose 1 coll_hier_net_rate 0.1" \
    says="MPI_COMM_WORLD: 70001 bytes a rank: ring, chunks of .* in flight; expected .*direct puts: " \
    -- exact --expect hier --sizes 70001
case_ chosen-by-hand ranks=6 node_size=2 \
    mca="coll_hier_verbose 1 coll_hier_inter direct coll_hier_chunk_bytes 4096 coll_hier_depth 3" \
    says="MPI_COMM_WORLD: 70001 bytes a rank: direct puts, chunks of 4096 bytes, 3 in flight; .*; as coll_hier_inter says)" \
    -- exact --expect hier --sizes 70001

case_ chosen-fallback ranks=4 node_size=2 mca="coll_hier_verbose 1 coll_hier_min_bytes 1000000000" \
    says="communicator .*: .* bytes in all are less than coll_hier_min_bytes .1000000000.: the fallback module" \
    -- exact --expect fallback --sizes 1

# Two devices a rank. The ranks of a host share the list, and each gets its part. The loopback stands for several devices.
loopbacks=lo,lo,lo,lo,lo,lo,lo,lo
case_ devices-two ranks=4 node_size=2 says="UCX tcp on lo,lo between nodes; .*, 2 a rank, at" \
    mca="coll_hier_verbose 1 coll_hier_net_devices $loopbacks coll_hier_chunk_bytes 16384" -- exact --expect hier
case_ devices-two-ring ranks=4 node_size=1 says="UCX tcp on lo,lo between nodes; .*, 2 a rank, at" \
    mca="coll_hier_verbose 1 coll_hier_net_devices $loopbacks coll_hier_inter ring" -- exact --expect hier
case_ "devices-two-of-{1,1,1}" layout=1,1,1 links=2 mca="coll_hier_verbose 1 coll_hier_net_devices eth0,eth1" \
    says="UCX tcp on eth0,eth1 between nodes; 2 network devices a node, 2 a rank, at" -- exact --expect hier
case_ "devices-two-of-{3,1}" layout=3,1 links=2 mca="coll_hier_net_devices eth0,eth1" -- exact --expect hier
case_ devices-two-lifetime ranks=4 node_size=2 mca="coll_hier_net_devices $loopbacks" \
    -- lifetime --expect hier --count 50
case_ devices-one-at-most ranks=4 node_size=2 says="UCX tcp on lo between nodes; 1 network device a node at" \
    mca="coll_hier_verbose 1 coll_hier_net_devices $loopbacks coll_hier_nics 1" -- exact --expect hier --sizes 70001

# One rank has no hier, or other settings that decide who serves a call. It would send its own data into the set-up of the
# others. So the fallback module serves all ranks.
no_hier="the fallback module serves its calls"
case_ absent-on-odd-ranks fault="some ranks lack hier | coll ^hier on odd ranks | a line; the fallback module serves" \
    ranks=4 node_size=2 odd=OMPI_MCA_coll=^hier says="rank 1 of .* has no coll/hier.*$no_hier" -- exact --sizes 1,4097 --calls 10
case_ switched-off-on-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_priority=-1 says="$no_hier" -- exact --sizes 1,4097 --calls 10
case_ priority-of-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_priority=20 says="rank 1 of .*priority.*$no_hier" -- exact --sizes 1,4097 --calls 10
case_ refused-on-odd-ranks ranks=4 node_size=2 coll=- odd=OMPI_MCA_coll_hier_timeout=-1 \
    says="rank 1 of .* has no coll/hier.*$no_hier" -- exact --sizes 1,4097 --calls 10
case_ chunk-bytes-of-odd-ranks fault="ranks have different settings | other values on odd ranks | a line; the fallback module serves" \
    ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_chunk_bytes=5000 \
    says="coll_hier_chunk_bytes differs between rank 0 and rank 1" -- exact --sizes 1,4097 --calls 10
case_ empty-on-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_trace= -- exact --expect hier --sizes 1,4097
case_ min-bytes-of-odd-ranks fault="ranks have different settings | other values on odd ranks | a line; the fallback module serves" \
    ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_min_bytes=5000 says="rank 1 of .*min_bytes.*$no_hier" -- exact --sizes 1,4097 --calls 10

# hier's TCP takes the devices that Open MPI's TCP is told to take.
case_ devices-by-name layout=1,1 links=2 mca="coll_hier_verbose 1 btl_tcp_if_include eth1" \
    says="UCX tcp on eth1 between nodes" -- exact --expect hier --sizes 70001
case_ devices-by-network layout=1,1 links=2 mca="coll_hier_verbose 1 btl_tcp_if_include 10.77.1.0/24" \
    says="UCX tcp on eth1 between nodes" -- exact --expect hier --sizes 70001

# A network that reaches no peer costs some seconds, once, and hier prints a line.
case_ unreachable-network fault="the network reaches no peer | device lo between two nodes | a line; the fallback module serves" \
    layout=1,1 mca="coll_hier_net_devices lo" \
    says="rail rank . cannot be reached: .*; is tcp on device .lo. the right network. .coll_hier_net_devices." -- exact --sizes 70001
# No TCP where the user forbids it.
case_ tcp-off ranks=2 node_size=1 mca="coll_hier_net_transports ^tcp" says="no RDMA device, and TCP is switched off" \
    -- exact --expect fallback --sizes 70001
# Open MPI uses a network that UCX does not support. hier does not take TCP beside it unless a variable says so.
cm="pml cm mtl ofi mtl_ofi_provider_include tcp"
if ompi_info --parsable 2>/dev/null | grep -q '^mca:mtl:ofi:'; then
    case_ other-network ranks=2 node_size=1 mca="$cm" \
        says="Open MPI sends by its pml cm, .* than TCP on .*coll_hier_net_transports" -- exact --sizes 70001
    case_ other-network-told ranks=2 node_size=1 mca="$cm coll_hier_net_transports tcp" -- exact --expect hier --sizes 70001
fi
# Many ranks look for a path to the same one.
case_ crowded-rail layout=20,1 -- exact --expect hier --sizes 1 --calls 0

# Performance variables: each case is a path.
for way in "copies 1000000 3 0" "published 1000 3 0" "direct 1000000 3 1" "ring 1000000 3 1" "bundles 1000000 4 2"; do
    read -r path bytes ranks size <<<"$way"
    case_ "counters-$path" ranks="$ranks" node_size="$size" \
        mca="coll_hier_min_bytes 1$( ((size)) && echo " coll_hier_inter $path")" -- counters --path "$path" --bytes "$bytes"
done
case_ counters-fallback ranks=2 mca="coll_hier_min_bytes 1g" -- counters --path fallback

# A trace of one call, in complete files. If the files cannot be written, hier prints a line and the calls go on.
for shape in "4 2" "4 1" "6 2"; do
    read -r ranks size <<<"$shape"
    case_ "trace-$ranks-by-$size" ranks="$ranks" node_size="$size" \
        mca="coll_hier_trace ${scratch:-}/trace-$ranks-$size coll_hier_trace_call 2 coll_hier_inter direct" \
        -- trace --expect hier --ranks-per-node "$size"
done
case_ trace-small ranks=4 node_size=2 \
    mca="coll_hier_trace ${scratch:-}/trace-small coll_hier_trace_call 2 coll_hier_inter direct" \
    -- trace --expect hier --ranks-per-node 2 --bytes 100
case_ trace-unwritable fault="a trace cannot be written | a directory that does not exist | a line; the calls go on" \
    ranks=4 node_size=2 mca="coll_hier_trace /nonexistent/x coll_hier_trace_call 2" \
    says="coll_hier_trace: cannot write /nonexistent/x.traced__a_b.0.2.csv: No such file" \
    -- trace --expect hier --writable 0

# ---- Programs of bench

# Derived datatypes by bench/allgather, which checks the holes, too.
case_ bench-blocks directory=bench ranks=3 mca="coll_hier_verbose 1" says="MPI_Allgather of blocks 3@7, memory host" \
    -- allgather --blocks 3@7 --sizes 3,30000 --iterations 3 --validate all
case_ bench-blocks-gpu directory=bench ranks=3 gpu=20 \
    -- allgather --blocks 64@4k --sizes 64,64k --iterations 3 --validate all --memory device --in-place
case_ bench-other-columns directory=bench ranks=2 status=error says="config.log: its first line names other columns" \
    -- allgather --sizes 8 --iterations 3 --csv "$build/config.log"

# bench/levels compares the parts that it names. hier serves each of them; if not, bench/levels refuses to time it. No
# case asserts how long they take.
case_ levels-4-by-2 directory=bench ranks=4 mca="coll_hier_verbose 1" says="network: 2 ranks on 2 nodes \(1,1\)" \
    -- levels --ranks-per-node 2 --sizes 1,70001 --iterations 3 --validate all
case_ levels-6-by-2 directory=bench ranks=6 mca="coll_hier_verbose 1" says="links: 2 ranks on 1 node " \
    -- levels --ranks-per-node 2 --sizes 70001 --iterations 3 --in-place
case_ levels-5-by-2 directory=bench ranks=5 mca="coll_hier_verbose 1" says="70001 +3 +- +[0-9.]+ +[0-9.]+ +- " \
    -- levels --ranks-per-node 2 --sizes 70001 --iterations 3 --validate all
case_ "levels-{3,1}-cyclic" directory=bench layout=3,1 order=cyclic says="70001 +3 +- +[0-9.]+ +[0-9.]+ +- " \
    -- levels --sizes 70001 --iterations 3 --validate all
case_ levels-4-by-2-gpu directory=bench ranks=4 gpu=20 -- levels --ranks-per-node 2 --memory device --sizes 70001 --iterations 3
case_ levels-notices-a-fallback directory=bench ranks=4 mca="coll_hier_min_bytes 250000" status=error \
    says="hier served 0 of" -- levels --ranks-per-node 2 --sizes 70001 --iterations 3
case_ levels-notices-an-absent-component directory=bench ranks=2 coll=^hier status=error says="no counter says" \
    -- levels --sizes 70001 --iterations 3
case_ levels-notices-other-nodes directory=bench ranks=4 node_size=2 status=error says="say --ranks-per-node 2" \
    -- levels --sizes 70001 --iterations 3

# ---- Failures

# hier refuses a value out of range, and names the variable.
for bad in "coll_hier_inter sideways" "coll_hier_intra sideways" "coll_hier_ranks_per_node -3" \
    "coll_hier_chunk_bytes -1" "coll_hier_depth -5" "coll_hier_nics 0" "coll_hier_timeout -7" "coll_hier_min_bytes -9" \
    "coll_hier_trace_call -1" "coll_hier_net_rate -1" "coll_hier_link_rate nan" "coll_hier_gpu_direct sideways" \
    "coll_hier_kernels 3" "coll_hier_gpu_cpu_access 2" "coll_hier_priority high" "coll_hier_eager_bytes 1e3" "coll_hier_ranks_per_node 2x" "coll_hier_depth 2k" \
    "coll_hier_chunk_bytes 9999999999g" "coll_hier_timeout_action never"; do
    read -r variable value <<<"$bad"
    case_ "refused-${variable#coll_hier_}-$value" fault="a variable out of range | bad values | refused with variable, value and range" \
        mca="$bad" status=error says="$variable.*$value|$value.*$variable" limit=40 \
        -- exact --sizes 1
done

# Every failure ends with an error on every rank. mpirun notices a killed rank first.
case_ fault-kill fault="a rank dies | SIGKILL inside a call | mpirun ends the job" \
    ranks=4 node_size=2 mca="coll_hier_timeout 3 coll_hier_verbose 1" status=error \
    says="300007 bytes a rank: direct puts" limit=60 -- fault --mode kill --expect hier
for mode in stop counts; do
    for way in cma shm; do
        case_ "fault-$mode-$way" ranks=4 node_size=2 mca="$fails_after 3 coll_hier_intra $way" status=error \
            says="survivor: error class" limit=60 -- fault --mode "$mode"
    done
done
case_ "fault-stop-{3,1}" fault="a rank stops for ever inside a call, where time may end it | SIGSTOP | an error on every other rank" \
    layout=3,1 mca="$fails_after 3" status=error says="survivor: error class" limit=60 \
    -- fault --mode stop
# By default nothing fails by time. A rank that is stopped inside a call is named, and the call ends well.
for way in cma shm; do
    case_ "fault-pause-$way" fault="a rank stops for some seconds inside a call | SIGSTOP and SIGCONT | a line that names the rank; right results" \
        ranks=4 node_size=2 mca="coll_hier_timeout 1 coll_hier_intra $way" \
        says="the call moves again, after [0-9]+ s" -- fault --mode pause --expect hier
done
case_ "fault-pause-{2,1}" fault="a rank stops for some seconds inside a call | SIGSTOP and SIGCONT | a line that names the rank; right results" \
    layout=2,1 mca="coll_hier_timeout 1" says="nothing has moved for 1 s .*; the call goes on" \
    -- fault --mode pause --expect hier
# 32 MiB in one put at 8 MB/s, which takes four times the time-out.
case_ "fault-slow-{1,1}" fault="the network is slow | 32 MiB in one put at 8 MB/s | right results; no line" \
    layout=1,1 rate=64mbit mca="$fails_after 1 coll_hier_chunk_bytes 32m" never="nothing has moved" \
    -- fault --mode slow --bytes 33554432 --expect hier
# The same in a series of small calls. A stopped rank has not entered the next call, so that is the case of a late rank.
for size in 0 2; do
    case_ "fault-counts-small-by-$size" fault="ranks pass different sizes | other counts on one rank | MPI_ERR_COUNT on the ranks that see it" \
        ranks=4 node_size="$size" mca="coll_hier_timeout 3" status=error \
        says="ranks disagree on the size of a call" limit=60 -- fault --mode counts --expect hier --bytes 200
done
case_ fault-kill-small fault="a rank dies | SIGKILL inside a call | mpirun ends the job" \
    ranks=4 mca="coll_hier_timeout 3 coll_hier_verbose 1" status=error \
    says="200 bytes a rank: publish" limit=60 -- fault --mode kill --expect hier --bytes 200
case_ fault-late-small fault="a rank enters late | a pause longer than the time-out | a line that names the rank; right results" \
    ranks=4 mca="coll_hier_timeout 2" says="rank 3 has not entered" limit=60 \
    -- fault --mode late --expect hier --bytes 200
case_ fault-resume fault="a whole job stops for longer than the time-out | SIGSTOP and SIGCONT | right results" \
    ranks=2 node_size=1 mca="$fails_after 1" limit=60 -- fault --mode resume
case_ fault-again ranks=4 node_size=2 mca="coll_hier_timeout 3" limit=60 -- fault --mode again
for shape in "0 auto" "2 direct" "2 ring" "2 bundles" "1 direct"; do
    read -r size way <<<"$shape"
    for mode in kill inside revoke; do
        for bytes in 200 300007; do
            case_ "ulfm-$mode-by-$size-$way-$bytes" fault="a rank dies or a communicator is revoked, with ULFM | SIGKILL, MPIX_Comm_revoke | the error of ULFM; the shrunk communicator works" \
                ulfm=yes ranks=4 node_size="$size" mca="coll_hier_inter $way" limit=60 \
                -- ulfm --mode "$mode" --bytes "$bytes" --expect hier
        done
    done
    for mode in kill setup revoke; do
        case_ "ulfm-nonblocking-$mode-by-$size-$way" ulfm=yes ranks=4 node_size="$size" mca="coll_hier_inter $way" limit=60 \
            -- ulfm --mode "$mode" --after 2000 --call iallgather
    done
    for us in 1000 2000 3000 5000; do
        case_ "ulfm-setup-by-$size-$way-$us" fault="a rank dies in the set-up, with ULFM | SIGKILL after some time | the error of ULFM; nobody hangs" \
            ulfm=yes ranks=6 node_size="$size" mca="coll_hier_inter $way" limit=60 \
            -- ulfm --mode setup --after "$us"
    done
done
for where in alone inside; do
    case_ "sessions-$where" ranks=4 node_size=2 mca="coll_hier_verbose 1" limit=60 \
        says="FROM GROUP: 4 ranks on 2 nodes" -- sessions "--$where"
done
case_ main-thread-3 ranks=3 -- main_thread --expect hier
case_ main-thread-3-by-1 ranks=3 node_size=1 -- main_thread --expect hier
case_ signals-2-by-1 ranks=2 node_size=1 -- signals --expect hier
case_ signals-switched-off ranks=2 coll=- mca="coll_hier_priority -1" -- signals --expect none
case_ children-4-by-2 ranks=4 node_size=2 -- children --expect hier
case_ children-progress ranks=2 mca="coll_hier_progress_thread 1" -- children --expect hier
case_ spawned-2-by-1 ranks=2 node_size=1 -- spawned --expect hier
case_ fault-late fault="a rank enters late | a pause longer than the time-out | a line that names the rank; right results" \
    ranks=4 node_size=2 mca="coll_hier_timeout 2" says="rank 3 has not entered" limit=60 \
    -- fault --mode late --expect hier

# Tests of the programs: they notice a wrong byte, an absent component and a fallback.
case_ notices-a-wrong-bit ranks=2 status=error says="wrong from byte" -- exact --sizes 4097 --calls 0 --corrupt 1
while read -r where line; do
    case_ "notices-a-wrong-byte-in-$where" ranks=2 status=error says="$line" -- allgatherv --scales 4099 --calls 0 --corrupt "$where"
done <<'END'
block \(block [01], byte 0\): expected
gap \(in a gap\): expected
behind byte 0 behind the buffer: expected
END
case_ notices-a-wrong-byte-among-threads ranks=2 status=error says="call 499 of communicator 0, .*: expected" \
    -- stress --calls 2000 --corrupt 500
case_ notices-a-hang-among-threads ranks=2 status=error says="rank 1, thread [0-9]: .*call [0-9]+ of communicator 0" \
    -- stress --calls 2000 --hang 500 --stall 4
case_ notices-a-leak-among-threads ranks=2 mca="$kept" status=error says="rank [01]: private KiB: .* at the end" \
    -- stress --calls 2000 --leak 5000
case_ notices-an-absent-component ranks=2 coll=^hier status=error says="not loaded|not served by hier" \
    -- exact --sizes 4097 --calls 0 --expect hier
case_ notices-a-fallback ranks=2 mca="coll_hier_min_bytes 1000000000" status=error says="not served by hier" \
    -- exact --sizes 4097 --calls 0 --expect hier

# ---- run --valgrind
case_ valgrind-exact set=valgrind ranks=3 node_size=2 -- exact --expect hier --sizes 1,4097,70001 --calls 12
case_ valgrind-allgatherv set=valgrind ranks=3 node_size=2 -- allgatherv --expect hier --scales 7,4099 --calls 12
case_ valgrind-exact-shm set=valgrind ranks=3 node_size=2 mca="coll_hier_intra shm coll_hier_inter ring" \
    -- exact --expect hier --sizes 1,4097,70001 --calls 12
case_ valgrind-datatypes set=valgrind ranks=3 node_size=2 -- datatypes --expect hier --scales 1
case_ valgrind-lifetime set=valgrind ranks=3 node_size=2 \
    -- lifetime --expect hier --count 10 --leak-bytes 1000000000
case_ valgrind-nonblocking set=valgrind ranks=3 node_size=2 -- nonblocking --expect hier --large 1
case_ valgrind-persistent set=valgrind ranks=3 node_size=2 -- persistent --expect hier --starts 2
case_ valgrind-others set=valgrind ranks=3 node_size=2 -- others --expect hier

# ---- run --rdma: over RDMA devices
# Soft RoCE in an emulated machine is slow, so the cases are few and short. Between two devices of one host it delivers to
# the sender, so the ranks of a rail keep to one device, or each node has the same ones.
one="coll_hier_net_devices rxe0:1"
case_ rdma-direct set=rdma ranks=4 node_size=2 mca="$one coll_hier_inter direct coll_hier_verbose 1" \
    says="UCX rc on rxe0:1 between nodes" -- exact --expect hier --sizes 1,4097,262147 --calls 20
case_ rdma-ring set=rdma ranks=3 node_size=1 mca="$one coll_hier_inter ring coll_hier_chunk_bytes 16384" \
    -- exact --expect hier --sizes 3,70001 --calls 10
case_ rdma-bundles set=rdma ranks=4 node_size=2 mca="$one coll_hier_inter bundles" -- exact --expect hier --sizes 1,4097 --calls 10
case_ rdma-allgatherv set=rdma ranks=4 node_size=2 mca="$one" -- allgatherv --expect hier --scales 7,4099 --calls 20
case_ "rdma-{2,1}" set=rdma layout=2,1 mca="$one" -- exact --expect hier --sizes 70001 --calls 10
case_ "rdma-devices-{1,1}" set=rdma layout=1,1 says="UCX rc on rxe0:1,rxe1:1 between nodes; .*, 2 a rank, at" \
    mca="coll_hier_verbose 1 coll_hier_chunk_bytes 16384" -- exact --expect hier --sizes 4097,262147 --calls 10
case_ rdma-mappings set=rdma ranks=4 node_size=2 mca="$one" -- mappings --expect hier
case_ rdma-absent set=rdma ranks=2 node_size=1 mca="$one" -- absent --expect hier --calls 5
case_ rdma-lifetime set=rdma ranks=3 node_size=1 mca="$one" -- lifetime --expect hier --count 10
case_ rdma-threads set=rdma ranks=2 node_size=1 mca="$one" -- threads --expect hier --threads 2
case_ rdma-gpu set=rdma ranks=2 node_size=1 gpu=20 mca="$one" -- gpu --expect hier --meetings 2
case_ rdma-children set=rdma ranks=2 node_size=1 mca="$one" -- children --expect hier
case_ rdma-spawned set=rdma ranks=2 node_size=1 mca="$one" -- spawned --expect hier
case_ rdma-stop fault="a rank stops for ever inside a call, where time may end it | SIGSTOP | an error on every other rank" \
    set=rdma ranks=3 node_size=1 mca="$one $fails_after 3" status=error says="survivor: error class" \
    -- fault --mode stop
case_ rdma-cut fault="an RDMA connection breaks | the device is cut off | an error on every rank" \
    set=rdma ranks=2 node_size=1 mca="$one $fails_after 5" -- fault --mode cut
case_ rdma-counts set=rdma ranks=3 node_size=1 mca="$one coll_hier_timeout 3" status=error says="survivor: error class" \
    -- fault --mode counts

# ---- test/soak
soak=(set=soak ranks=4 limit=$((soak_seconds + 120)))
# The pool of staging memory grows when a case wants more than ever before, and would pass for a leak.
case_ soak-host "${soak[@]}" node_size=2 mca="coll_hier_staging_kept 512k" -- soak --expect hier --seconds "$soak_seconds"
case_ soak-host-cluster "${soak[@]}" layout=2,2 mca="coll_hier_staging_kept 512k" -- soak --expect hier --seconds "$soak_seconds"
case_ soak-gpu "${soak[@]}" node_size=2 gpu=20 -- gpu_soak --expect hier --seconds "$soak_seconds"
case_ soak-gpu-cluster "${soak[@]}" layout=2,2 gpu=20 -- gpu_soak --expect hier --seconds "$soak_seconds"
case_ soak-gpu-cuda "${soak[@]}" node_size=2 gpu=20 runtime=cuda -- gpu_soak --expect hier --seconds "$soak_seconds"
case_ soak-gpu-cuda-cluster "${soak[@]}" layout=2,2 gpu=20 runtime=cuda -- gpu_soak --expect hier --seconds "$soak_seconds"
case_ soak-killed fault="a rank dies at a random moment | SIGKILL | the job ends; no process and no shared memory stays" \
    "${soak[@]}" node_size=2 status=error -- fuzz --expect hier --cases 1000000000
