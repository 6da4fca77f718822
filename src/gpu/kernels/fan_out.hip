// SPDX-License-Identifier: BSD-3-Clause
// The kernel of hier/gpu_fan_out.hpp.
#include "hier/gpu_fan_out.hpp"

namespace {

using hier::gpu::FanOut;

struct alignas(FanOut::wide) Wide {
    uint64_t first, second;
};
static_assert(sizeof(Wide) == FanOut::wide && sizeof(uint32_t) == FanOut::narrow, "one access");

// Thread blocks of the running kernel that are done; 0 between kernels. Kernels run one at a time,
// because they are in one stream.
HIER_OF_DEVICE uint32_t blocks_done;
// What the running kernel adds to its values.
HIER_OF_DEVICE Words added;

// One piece after the other, and then the bytes that are left.
template <class Piece> __device__ void copy_pieces(const FanOut& f, const FanOut::Block& block)
{
    constexpr size_t together = 4;  // loads in flight of a thread
    const size_t begin = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t step = gridDim.x * blockDim.x;
    const size_t count = block.bytes / sizeof(Piece);
    const Piece* const from = reinterpret_cast<const Piece*>(block.from);
    unsigned char* const* const places = f.to + block.first;
    size_t i = begin;
    for (; i + (together - 1) * step < count; i += together * step) {
        Piece pieces[together];
        HIER_UNROLL
        for (size_t k = 0; k < together; k++) pieces[k] = from[i + k * step];
        for (uint32_t p = 0; p < block.places; p++) {
            Piece* const to = reinterpret_cast<Piece*>(places[p]);
            HIER_UNROLL
            for (size_t k = 0; k < together; k++) to[i + k * step] = pieces[k];
        }
    }
    for (; i < count; i += step) {
        const Piece piece = from[i];
        for (uint32_t p = 0; p < block.places; p++)
            reinterpret_cast<Piece*>(places[p])[i] = piece;
    }
    for (i = count * sizeof(Piece) + begin; i < block.bytes; i += step) {
        for (uint32_t p = 0; p < block.places; p++) places[p][i] = block.from[i];
    }
}

}  // namespace

extern "C" __global__ void hier_fan_out(const HIER_IN_PLACE FanOut f);

extern "C" __global__ void hier_fan_out(const HIER_IN_PLACE FanOut f)
{
    // What the host tells comes while the block is copied. One thread asks, because each of these reads waits
    // for those before it (H200: 64 of them take 60 us).
    const bool asks = f.added != nullptr && blockIdx.x + blockIdx.y + threadIdx.x == 0;
    Words found = {0, 0};
    if (asks) found = load(reinterpret_cast<const Words*>(f.added));
#if defined(__HIP__)
    __threadfence_system();  // the block may come from a NIC or a peer, and caches may be older
#endif
    const FanOut::Block& block = f.block[blockIdx.y];
    if (block.is_narrow != 0)
        copy_pieces<uint32_t>(f, block);
    else
        copy_pieces<Wide>(f, block);
#if defined(__HIP__)
    __threadfence_system();  // a barrier of AMD does not wait for the stores of other waves
#endif
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (asks) added = found;
    __threadfence_system();
    if (!is_last_block(&blocks_done)) return;
    const Words more = f.added != nullptr ? load(&added) : Words{0, 0};
    for (uint32_t s = 0; s < f.signals; s++) store(f.signal[s].at, f.signal[s].value + more.first);
    if (f.done != nullptr) store(f.done, f.done_value + more.second);
}
