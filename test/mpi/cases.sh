# SPDX-License-Identifier: BSD-3-Clause
# The table of cases, read by run. Every case states who must have served the calls (--expect).
#
# One start of mpirun costs as much as hundreds of calls, so each program tries many things at once, and the default
# set goes through the combinations of algorithms in turn where --all takes every one.

inter=(direct ring bundles)
intra=(cma shm auto)

# Ranks 1 to 9 on 1 to 4 nodes: virtual nodes of one size with a smaller last one where that gives the number of
# nodes, real ones for the rest (5, 6 and 9 ranks on 4 nodes).
turn=0
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
        for way in {0..8}; do
            ((way == turn % 9)) && set=default || set=all
            algorithms="coll_hier_inter ${inter[way % 3]} coll_hier_intra ${intra[way / 3]}"
            case_ "exact-$ranks-on-$nodes-${inter[way % 3]}-${intra[way / 3]}" set="$set" "${where[@]}" \
                mca="$algorithms" -- exact --expect hier --seed "$ranks$nodes"
        done
        ((turn++))
    done
done

# Uneven nodes, and every order of ranks.
turn=0
for layout in 3,1 2,3,1 4,1,2; do
    for order in block cyclic reversed shuffled map-by-node; do
        for way in {0..8}; do
            ((way == turn % 9)) && set=default || set=all
            case_ "exact-{$layout}-$order-${inter[way % 3]}-${intra[way / 3]}" set="$set" layout="$layout" order="$order" \
                mca="coll_hier_inter ${inter[way % 3]} coll_hier_intra ${intra[way / 3]}" -- exact --expect hier
        done
        ((turn++))
    done
done

# Chunks that do not divide the block, and one at a time.
case_ exact-small-chunks ranks=5 node_size=2 mca="coll_hier_chunk_bytes 65536 coll_hier_depth 1" -- exact --expect hier
case_ exact-chosen-by-hier ranks=6 node_size=3 -- exact --expect hier --calls 200

for shape in "1 0" "2 0" "3 2" "4 2" "7 3"; do
    read -r ranks size <<<"$shape"
    case_ "datatypes-$ranks-by-$size" ranks="$ranks" node_size="$size" -- datatypes --expect hier
done
case_ datatypes-shm ranks=4 node_size=2 mca="coll_hier_intra shm" -- datatypes --expect hier
case_ "datatypes-{2,3,1}" layout=2,3,1 order=cyclic -- datatypes --expect hier

for shape in "1 0" "2 1" "4 2" "5 2" "9 4"; do
    read -r ranks size <<<"$shape"
    case_ "others-$ranks-by-$size" ranks="$ranks" node_size="$size" -- others --expect hier
done
case_ "others-{3,1}" layout=3,1 order=reversed -- others --expect hier

case_ lifetime-4-by-2 ranks=4 node_size=2 shm=private limit=150 -- lifetime --expect hier
case_ lifetime-3-by-0 ranks=3 shm=private limit=150 -- lifetime --expect hier --count 200
case_ no-dev-shm ranks=4 node_size=2 shm=16k mca="coll_hier_intra shm btl tcp,self btl_tcp_if_include lo" -- exact --expect hier
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
case_ mappings-4-by-2 ranks=4 node_size=2 -- mappings --expect hier
case_ "mappings-{2,1}" layout=2,1 -- mappings --expect hier
case_ mappings-shm ranks=3 mca="coll_hier_intra shm" -- mappings --expect hier
case_ setup-cost-8-by-4 ranks=8 node_size=4 -- setup_cost --expect hier

# GPU memory, on the simulated runtime: the CPU cannot reach it there.
turn=0
for shape in "1 0" "2 0" "3 0" "4 2" "5 2" "6 2" "7 3" "8 3"; do
    read -r ranks size <<<"$shape"
    for way in {0..8}; do
        ((way == turn % 9)) && set=default || set=all
        case_ "gpu-$ranks-by-$size-${inter[way % 3]}-${intra[way / 3]}" set="$set" ranks="$ranks" node_size="$size" gpu=20 \
            mca="coll_hier_inter ${inter[way % 3]} coll_hier_intra ${intra[way / 3]}" \
            -- gpu --expect hier --meetings $((ranks > 4 ? 5 : 36)) --large $((ranks < 5))
    done
    ((turn++))
done
# The network reads and writes device memory itself: on all ranks, or on the odd ones, the others staging theirs.
turn=0
for shape in "4 2" "3 2" "3 1"; do
    read -r ranks size <<<"$shape"
    case_ "gpu-direct-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 direct=all \
        mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_verbose 1 coll_hier_inter ${inter[turn % 3]}" \
        says="UCX tcp on [^,]*, device memory directly" \
        -- gpu --expect hier --meetings 5 --large 1 --direct 1
    case_ "gpu-direct-on-some-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 direct=odd \
        mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_inter ${inter[turn % 3]}" \
        says="coll_hier_gpu_direct is on, but UCX does not know ROCm memory" \
        -- gpu --expect hier --meetings 5 --large 1 --direct 2
    ((turn++))
done
for which in all odd; do
    case_ "gpu-direct-bundles-$which" ranks=4 node_size=2 gpu=20 direct="$which" \
        mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_inter bundles" \
        -- gpu --expect hier --meetings 5 --large 1 --direct $([[ $which == all ]] && echo 1 || echo 2)
done
# The same by CUDA's module, on a simulated CUDA.
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
# Small blocks go to their place in the receive buffer by copies that are kept ready, before and behind those to peers.
for ranks in 2 4; do
    case_ "gpu-cuda-prepared-$ranks" directory=bench ranks="$ranks" gpu=20 runtime=cuda refuses=unprepared \
        -- allgather --sizes 1,70001,1m,4m,3m,70001 --iterations 3 --validate all --memory device
done
case_ gpu-cuda-without-peers ranks=3 gpu=20 runtime=cuda mca="coll_hier_gpu_peers off" \
    -- gpu --expect hier --meetings 5 --large 1 --mappings 0
case_ gpu-cuda-direct-links ranks=3 gpu=20 runtime=cuda gpu_links=direct mca="coll_hier_verbose 1" \
    says="GPUs are linked one by one: copies to all peers at once" -- gpu --expect hier --meetings 1 --large 1
case_ gpu-cuda-direct ranks=4 node_size=2 gpu=20 runtime=cuda direct=all \
    mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_verbose 1" says="UCX tcp on [^,]*, device memory directly" \
    -- gpu --expect hier --meetings 5 --large 1 --direct 1
case_ gpu-cuda-lifetime ranks=4 node_size=2 gpu=20 runtime=cuda leaves=anything -- gpu_lifetime --expect hier
case_ gpu-cuda-datatypes ranks=3 gpu=2 runtime=cuda -- gpu_datatypes --expect hier --one-node 1
case_ gpu-cuda-capture ranks=2 gpu=20 runtime=cuda -- gpu_capture --expect hier
case_ gpu-cuda-late ranks=2 gpu=20 runtime=cuda -- gpu_late --expect hier
case_ gpu-direct-lifetime ranks=4 node_size=2 gpu=20 direct=all mca="coll_hier_gpu_direct on coll_hier_eager_bytes 0 coll_hier_chunk_bytes 5000" -- gpu_lifetime --expect hier
case_ gpu-direct-auto ranks=4 node_size=2 gpu=20 direct=all mca="coll_hier_verbose 1" \
    says="device memory through pinned memory \(tcp is no RDMA\)" -- gpu --expect hier --meetings 1 --large 0
case_ gpu-slow-copies ranks=3 node_size=2 gpu=2000 -- gpu --expect hier --meetings 1 --large 0
case_ gpu-fallback-all ranks=4 node_size=2 gpu=20 mca="coll_hier_min_bytes 1000000000" -- gpu --expect fallback --meetings 3
case_ gpu-below-min ranks=3 node_size=2 gpu=20 mca="coll_hier_min_bytes 32768" \
    -- gpu --expect hier --min-bytes 32768 --meetings 5
for shape in "1 0" "3 0" "4 2" "5 3"; do
    read -r ranks size <<<"$shape"
    case_ "gpu-lifetime-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=20 -- gpu_lifetime --expect hier
    case_ "gpu-datatypes-$ranks-by-$size" ranks="$ranks" node_size="$size" gpu=2 \
        -- gpu_datatypes --expect hier --one-node $((size == 0 && ranks > 1))
done
case_ gpu-lifetime-shm ranks=4 node_size=2 gpu=20 mca="coll_hier_intra shm" -- gpu_lifetime --expect hier
case_ gpu-datatypes-fallback ranks=3 gpu=2 mca="coll_hier_min_bytes 1000000000" -- gpu_datatypes --expect fallback
case_ gpu-huge set=all ranks=1 gpu=0 limit=240 -- gpu_datatypes --expect fallback --huge 1
case_ gpu-capture-2-by-0 ranks=2 gpu=20 -- gpu_capture --expect hier
case_ gpu-capture-3-by-2 ranks=3 node_size=2 gpu=20 -- gpu_capture --expect hier
case_ gpu-late-3-by-0 ranks=3 gpu=20 -- gpu_late --expect hier
case_ gpu-late-4-by-2 ranks=4 node_size=2 gpu=20 -- gpu_late --expect hier
case_ gpu-late-but-one ranks=4 node_size=3 gpu=20 -- gpu_late --expect hier --early 1
# Whatever call of HIP fails on one rank, all end well: an error or the right result.
for victim in 0 2; do
    case_ "gpu-faults-3-by-0-rank-$victim" ranks=3 gpu=5 mca="coll_hier_timeout 5" -- gpu_faults --victim "$victim"
    case_ "gpu-faults-4-by-2-rank-$victim" ranks=4 node_size=2 gpu=5 mca="coll_hier_timeout 5" -- gpu_faults --victim "$victim"
done
case_ gpu-faults-typed ranks=2 gpu=5 mca="coll_hier_timeout 5" -- gpu_faults --victim 1 --typed 1
case_ gpu-failing-copies-typed ranks=2 gpu=50 mca="coll_hier_timeout 5" -- gpu_faults --typed 1 --async 1 --most 10
case_ gpu-faults-shm ranks=3 gpu=5 mca="coll_hier_timeout 5 coll_hier_intra shm" -- gpu_faults --victim 1
case_ gpu-failing-copies-3-by-0 ranks=3 gpu=50 mca="coll_hier_timeout 5" -- gpu_faults --async 1 --most 15
case_ gpu-failing-copies-4-by-2 ranks=4 node_size=2 gpu=50 mca="coll_hier_timeout 5" -- gpu_faults --victim 1 --async 1 --most 15
# In the fallback module nobody can be told of a failure: staging gets round every one.
case_ gpu-faults-fallback ranks=3 gpu=5 mca="coll_hier_min_bytes 1000000000" -- gpu_faults --victim 1 --harmless 1
case_ gpu-failing-copies-fallback ranks=3 gpu=5 mca="coll_hier_min_bytes 1000000000" \
    -- gpu_faults --async 1 --most 15 --harmless 1
# A rank that cannot take part has an error, and keeps nobody waiting: its runtime has no module, or it has no memory.
for victim in 0 2; do
    case_ "gpu-without-module-rank-$victim" ranks=4 node_size=2 gpu=5 modules=/nonexistent mca="coll_hier_timeout 5" \
        says="has loaded libamdhip64.so, but no module .*: /nonexistent/hier_gpu_rocm.so: cannot open" \
        -- gpu_unusable --expect hier --victim "$victim"
    case_ "gpu-without-module-fallback-rank-$victim" ranks=3 gpu=5 modules=/nonexistent mca="coll_hier_min_bytes 1000000000" \
        says="no GPU runtime that works: hier_gpu_rocm.so: /nonexistent/hier_gpu_rocm.so: cannot open" \
        -- gpu_unusable --expect fallback --victim "$victim"
done
case_ gpu-without-memory ranks=3 gpu=5 mca="coll_hier_min_bytes 1000000000" \
    says="rank 1 cannot take part in an allgather of 2097153 bytes .*: it has no memory" \
    -- gpu_unusable --expect fallback --victim 1 --memory 0
case_ gpu-hanging-copy-fallback ranks=3 gpu=5 leaves=pinned mca="coll_hier_min_bytes 1000000000 coll_hier_timeout 2" \
    says="rank 1 cannot take part in an allgather of 300007 bytes .*: the others get zeros" \
    -- gpu_unusable --expect fallback --victim 1 --hang 1

# Ways to choose the component, and to leave it out.
case_ coll-priority ranks=4 node_size=2 coll=- mca="coll_hier_priority 95" -- exact --expect hier --sizes 1,4097
# (MPI_Exscan of coll/basic 4.1 crashes on one rank; where coll/self is loaded it is never asked.)
case_ coll-hier-basic-libnbc ranks=4 node_size=2 coll=hier,basic,libnbc -- others --expect hier --exscan-alone 0
case_ coll-below-tuned ranks=4 coll=- mca="coll_hier_priority 20" -- exact --expect none --sizes 1,4097
case_ coll-priority-0 ranks=3 coll=- mca="coll_hier_priority 0" -- others --expect none
case_ coll-without-hier ranks=3 coll=^hier -- others --expect none
case_ fallback-all ranks=4 node_size=2 mca="coll_hier_min_bytes 1000000000" -- exact --expect fallback
case_ fallback-below-min ranks=4 node_size=2 mca="coll_hier_min_bytes 16388" \
    -- exact --expect hier --min-bytes 16388 --sizes 1,4096,4097,70001
case_ wrapped-by-sync ranks=4 node_size=2 coll=- \
    mca="coll_hier_priority 90 coll_sync_priority 99 coll_sync_barrier_before 3" -- lifetime --expect hier --count 50

# Which path runs, and why, is said.
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

# Two devices a rank: of the list, which the ranks of a host share, each gets its part; here connections over loopback.
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

# Who has no hier, or counts calls otherwise, would meet a set-up with data of its own.
no_hier="the fallback module serves its allgathers"
case_ absent-on-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll=^hier says="rank 1 of .* has no coll/hier.*$no_hier" -- exact
case_ switched-off-on-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_priority=-1 says="$no_hier" -- exact
case_ priority-of-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_priority=20 says="rank 1 of .*priority.*$no_hier" -- exact
case_ refused-on-odd-ranks ranks=4 node_size=2 coll=- odd=OMPI_MCA_coll_hier_timeout=-1 \
    says="rank 1 of .* has no coll/hier.*$no_hier" -- exact
case_ chunk-bytes-of-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_chunk_bytes=5000 \
    says="coll_hier_chunk_bytes differs between rank 0 and rank 1" -- exact
case_ empty-on-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_trace= -- exact --expect hier --sizes 1,4097
case_ min-bytes-of-odd-ranks ranks=4 node_size=2 odd=OMPI_MCA_coll_hier_min_bytes=5000 says="rank 1 of .*min_bytes.*$no_hier" -- exact

# Where Open MPI's own TCP is sent, ours goes, too.
case_ devices-by-name layout=1,1 links=2 mca="coll_hier_verbose 1 btl_tcp_if_include eth1" \
    says="UCX tcp on eth1 between nodes" -- exact --expect hier --sizes 70001
case_ devices-by-network layout=1,1 links=2 mca="coll_hier_verbose 1 btl_tcp_if_include 10.77.1.0/24" \
    says="UCX tcp on eth1 between nodes" -- exact --expect hier --sizes 70001

# A network that leads nowhere costs some seconds, once, and says so.
case_ unreachable-network layout=1,1 mca="coll_hier_net_devices lo" \
    says="rail rank . cannot be reached: .*; is tcp on device .lo. the right network. .coll_hier_net_devices." -- exact --sizes 70001
# Where Open MPI has a network of its own that UCX does not reach, TCP is not taken beside it, unless told.
cm="pml cm mtl ofi mtl_ofi_provider_include tcp"
if ompi_info --parsable 2>/dev/null | grep -q '^mca:mtl:ofi:'; then
    case_ other-network ranks=2 node_size=1 mca="$cm" \
        says="Open MPI sends by its pml cm, .* than TCP on .*coll_hier_net_transports" -- exact --sizes 70001
    case_ other-network-told ranks=2 node_size=1 mca="$cm coll_hier_net_transports tcp" -- exact --expect hier --sizes 70001
fi
# Many that look for one way to the same rank.
case_ crowded-rail layout=20,1 -- exact --expect hier --sizes 1

# A trace of one call, in files that are whole; a place that is none costs a line and no more.
for shape in "4 2" "4 1" "6 2"; do
    read -r ranks size <<<"$shape"
    case_ "trace-$ranks-by-$size" ranks="$ranks" node_size="$size" \
        mca="coll_hier_trace ${scratch:-}/trace-$ranks-$size coll_hier_trace_call 2 coll_hier_inter direct" \
        -- trace --expect hier --ranks-per-node "$size"
done
case_ trace-small ranks=4 node_size=2 \
    mca="coll_hier_trace ${scratch:-}/trace-small coll_hier_trace_call 2 coll_hier_inter direct" \
    -- trace --expect hier --ranks-per-node 2 --bytes 100
case_ trace-unwritable ranks=4 node_size=2 mca="coll_hier_trace /nonexistent/x coll_hier_trace_call 2" \
    says="coll_hier_trace: cannot write /nonexistent/x.traced__a_b.0.2.csv: No such file" \
    -- trace --expect hier --writable 0

# Derived datatypes by bench/allgather, which looks at the holes, too.
case_ bench-pieces directory=bench ranks=3 mca="coll_hier_verbose 1" says="MPI_Allgather of pieces 3@7, memory host" \
    -- allgather --pieces 3@7 --sizes 3,30000 --iterations 3 --validate all
case_ bench-pieces-gpu directory=bench ranks=3 gpu=20 \
    -- allgather --pieces 64@4k --sizes 64,64k --iterations 3 --validate all --memory device --in-place

# What bench/levels sets beside one another are the parts that it names, hier serves them, and nothing is timed that it
# does not serve. (Nobody asserts how long they take.)
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
case_ levels-notices-an-absent-component directory=bench ranks=2 coll=^hier status=error says="nobody counts" \
    -- levels --sizes 70001 --iterations 3
case_ levels-notices-other-nodes directory=bench ranks=4 node_size=2 status=error says="say --ranks-per-node 2" \
    -- levels --sizes 70001 --iterations 3

# A value that cannot be is refused by name.
for bad in "coll_hier_inter sideways" "coll_hier_intra sideways" "coll_hier_ranks_per_node -3" \
    "coll_hier_chunk_bytes -1" "coll_hier_depth -5" "coll_hier_nics 0" "coll_hier_timeout -7" "coll_hier_min_bytes -9" \
    "coll_hier_trace_call -1" "coll_hier_net_rate -1" "coll_hier_link_rate nan" "coll_hier_gpu_direct sideways" \
    "coll_hier_priority high" "coll_hier_eager_bytes 1e3" "coll_hier_ranks_per_node 2x" "coll_hier_depth 2k" \
    "coll_hier_chunk_bytes 9999999999g"; do
    read -r variable value <<<"$bad"
    case_ "refused-${variable#coll_hier_}-$value" mca="$bad" status=error says="$variable.*$value|$value.*$variable" limit=40 \
        -- exact --sizes 1
done

# What goes wrong must end, with an error, everywhere. (Of a killed rank mpirun hears first.)
case_ fault-kill ranks=4 node_size=2 mca="coll_hier_timeout 3 coll_hier_verbose 1" status=error \
    says="300007 bytes a rank: direct puts" limit=60 -- fault --mode kill --expect hier
for mode in stop counts; do
    for way in cma shm; do
        case_ "fault-$mode-$way" ranks=4 node_size=2 mca="coll_hier_timeout 3 coll_hier_intra $way" status=error \
            says="survivor: error class" limit=60 -- fault --mode "$mode"
    done
done
case_ "fault-stop-{3,1}" layout=3,1 mca="coll_hier_timeout 3" status=error says="survivor: error class" limit=60 \
    -- fault --mode stop
# In a series of calls whose blocks nobody asks for. (Who is stopped there has not entered the next one: that is late.)
for size in 0 2; do
    case_ "fault-counts-small-by-$size" ranks=4 node_size="$size" mca="coll_hier_timeout 3" status=error \
        says="ranks disagree on the size of a call" limit=60 -- fault --mode counts --expect hier --bytes 200
done
case_ fault-kill-small ranks=4 mca="coll_hier_timeout 3 coll_hier_verbose 1" status=error \
    says="200 bytes a rank: publish" limit=60 -- fault --mode kill --expect hier --bytes 200
case_ fault-late-small ranks=4 mca="coll_hier_timeout 2" says="rank 3 has not entered" limit=60 \
    -- fault --mode late --expect hier --bytes 200
case_ fault-resume ranks=2 node_size=1 mca="coll_hier_timeout 1" limit=60 -- fault --mode resume
case_ fault-again ranks=4 node_size=2 mca="coll_hier_timeout 3" limit=60 -- fault --mode again
for shape in "0 auto" "2 direct" "2 ring" "2 bundles" "1 direct"; do
    read -r size way <<<"$shape"
    for mode in kill inside revoke; do
        for bytes in 200 300007; do
            case_ "ulfm-$mode-by-$size-$way-$bytes" ulfm=yes ranks=4 node_size="$size" mca="coll_hier_inter $way" limit=60 \
                -- ulfm --mode "$mode" --bytes "$bytes" --expect hier
        done
    done
    for us in 1000 2000 3000 5000; do
        case_ "ulfm-setup-by-$size-$way-$us" ulfm=yes ranks=6 node_size="$size" mca="coll_hier_inter $way" limit=60 \
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
case_ spawned-2-by-1 ranks=2 node_size=1 -- spawned --expect hier
case_ fault-late ranks=4 node_size=2 mca="coll_hier_timeout 2" says="rank 3 has not entered" limit=60 \
    -- fault --mode late --expect hier

# The tests' own test: a wrong byte and an absent component must be noticed.
case_ notices-a-wrong-bit ranks=2 status=error says="wrong from byte" -- exact --sizes 4097 --calls 0 --corrupt 1
case_ notices-an-absent-component ranks=2 coll=^hier status=error says="not loaded|not served by hier" \
    -- exact --sizes 4097 --calls 0 --expect hier
case_ notices-a-fallback ranks=2 mca="coll_hier_min_bytes 1000000000" status=error says="not served by hier" \
    -- exact --sizes 4097 --calls 0 --expect hier

case_ valgrind-exact set=valgrind ranks=3 node_size=2 -- exact --expect hier --sizes 1,4097,70001 --calls 12
case_ valgrind-exact-shm set=valgrind ranks=3 node_size=2 mca="coll_hier_intra shm coll_hier_inter ring" \
    -- exact --expect hier --sizes 1,4097,70001 --calls 12
case_ valgrind-datatypes set=valgrind ranks=3 node_size=2 -- datatypes --expect hier --scales 1
case_ valgrind-lifetime set=valgrind ranks=3 node_size=2 \
    -- lifetime --expect hier --count 10 --leak-bytes 1000000000
case_ valgrind-others set=valgrind ranks=3 node_size=2 -- others --expect hier

# Over RDMA devices. Soft RoCE in an emulated machine is slow, so these are few and short; and it delivers what one device
# of a host sends to another to itself, so rails keep to one, or each node has the same ones.
one="coll_hier_net_devices rxe0:1"
case_ rdma-direct set=rdma ranks=4 node_size=2 mca="$one coll_hier_inter direct coll_hier_verbose 1" \
    says="UCX rc on rxe0:1 between nodes" -- exact --expect hier --sizes 1,4097,262147 --calls 20
case_ rdma-ring set=rdma ranks=3 node_size=1 mca="$one coll_hier_inter ring coll_hier_chunk_bytes 16384" \
    -- exact --expect hier --sizes 3,70001 --calls 10
case_ rdma-bundles set=rdma ranks=4 node_size=2 mca="$one coll_hier_inter bundles" -- exact --expect hier --sizes 1,4097 --calls 10
case_ "rdma-{2,1}" set=rdma layout=2,1 mca="$one" -- exact --expect hier --sizes 70001 --calls 10
case_ "rdma-devices-{1,1}" set=rdma layout=1,1 says="UCX rc on rxe0:1,rxe1:1 between nodes; .*, 2 a rank, at" \
    mca="coll_hier_verbose 1 coll_hier_chunk_bytes 16384" -- exact --expect hier --sizes 4097,262147 --calls 10
case_ rdma-mappings set=rdma ranks=4 node_size=2 mca="$one" -- mappings --expect hier
case_ rdma-absent set=rdma ranks=2 node_size=1 mca="$one" -- absent --expect hier --calls 5
case_ rdma-lifetime set=rdma ranks=3 node_size=1 mca="$one" -- lifetime --expect hier --count 20
case_ rdma-threads set=rdma ranks=2 node_size=1 mca="$one" -- threads --expect hier --threads 2
case_ rdma-gpu set=rdma ranks=2 node_size=1 gpu=20 mca="$one" -- gpu --expect hier --meetings 5
case_ rdma-children set=rdma ranks=2 node_size=1 mca="$one" -- children --expect hier
case_ rdma-spawned set=rdma ranks=2 node_size=1 mca="$one" -- spawned --expect hier
case_ rdma-stop set=rdma ranks=3 node_size=1 mca="$one coll_hier_timeout 3" status=error says="survivor: error class" \
    -- fault --mode stop
case_ rdma-cut set=rdma ranks=2 node_size=1 mca="$one coll_hier_timeout 5" -- fault --mode cut
case_ rdma-counts set=rdma ranks=3 node_size=1 mca="$one coll_hier_timeout 3" status=error says="survivor: error class" \
    -- fault --mode counts
