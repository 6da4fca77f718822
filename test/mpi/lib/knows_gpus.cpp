// SPDX-License-Identifier: BSD-3-Clause
// A library that is preloaded into MPI programs on a simulated runtime. It makes UCX say that UCX knows ROCm's and
// CUDA's memory. UCX then takes this memory for host memory, and TCP carries it. That works because the CPU reaches the
// memory (HIP_SIM_HIDDEN=0). With HIER_TEST_GDR=odd UCX says so on odd ranks alone.
#include <dlfcn.h>
#include <ucp/api/ucp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class F> F* real(const char* name)
{
    static void* const library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
        std::abort();
    }
    return reinterpret_cast<F*>(found);
}

bool is_told()
{
    const char* which = std::getenv("HIER_TEST_GDR");
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const bool only_odd = which != nullptr && std::strcmp(which, "odd") == 0;
    return !only_odd || rank == nullptr || std::atoi(rank) % 2 == 1;
}

bool has_cuda_context()
{
    using CurrentContext = int(void**);
    static auto* const current =
        reinterpret_cast<CurrentContext*>(dlsym(RTLD_DEFAULT, "cuCtxGetCurrent"));
    void* context = nullptr;
    return current != nullptr && current(&context) == 0 && context != nullptr;
}

}  // namespace

extern "C" ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t* attributes)
{
    static auto* const query = real<decltype(ucp_context_query)>("ucp_context_query");
    const ucs_status_t status = query(context, attributes);
    const bool is_asked = (attributes->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) != 0;
    if (status == UCS_OK && is_asked && is_told()) {
        attributes->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_ROCM) | UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    }
    return status;
}

extern "C" ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                                    ucp_mem_h* memory)
{
    static auto* const map = real<decltype(ucp_mem_map)>("ucp_mem_map");
    // A UCX that knows CUDA would call cuMemHostRegister for this memory in every call.
    if (params->memory_type == UCS_MEMORY_TYPE_HOST && has_cuda_context()) {
        std::fprintf(stderr, "memory of the host is registered under a CUDA context\n");
        std::abort();
    }
    ucp_mem_map_params_t plain = *params;
    plain.field_mask &= ~static_cast<std::uint64_t>(UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE);
    return map(context, &plain, memory);
}

extern "C" ucs_status_ptr_t ucp_put_nbx(ucp_ep_h endpoint, const void* data, std::size_t bytes,
                                        std::uint64_t to, ucp_rkey_h key,
                                        const ucp_request_param_t* param)
{
    static auto* const put = real<decltype(ucp_put_nbx)>("ucp_put_nbx");
    ucp_request_param_t plain = *param;
    plain.op_attr_mask &= ~static_cast<std::uint32_t>(UCP_OP_ATTR_FIELD_MEMORY_TYPE);
    return put(endpoint, data, bytes, to, key, &plain);
}
