// SPDX-License-Identifier: BSD-3-Clause
// Mappings of another process's device memory. They are kept, limited in number, and closed before
// other memory at the same address is mapped.
#include <unistd.h>

#include "node/device/imports/peer_mappings.hpp"
#include "team/group.hpp"
#include "test/support/gpu_rank.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t bytes = 50000;

ExportedMemory exported(std::byte* memory)
{
    const Allocation a = allocation_of(memory);
    ExportedMemory e{reinterpret_cast<std::uint64_t>(a.base), a.length, a.id, getpid(), 0, {}};
    if (!gpu::runtime()->export_memory(a, e.handle)) throw std::runtime_error("no export");
    return e;
}

// Rank 0 owns memory and tells rank 1. Each rank does its side of a step.
class Pair {
public:
    explicit Pair(const ForkedRank& self) : group_(self.group()), is_owner_(self.rank() == 0) {}
    bool is_owner() const { return is_owner_; }
    // Exchanges the description of the owner's memory. Both ranks have it when both have come here.
    ExportedMemory exchange(std::byte* memory) const
    {
        return group_.collect(is_owner_ ? exported(memory) : ExportedMemory{})[0];
    }
    void meet() const { (void)group_.collect(0); }

private:
    Group group_;
    bool is_owner_;
};

const char* run(std::string (*body)(const Pair&))
{
    return keep(first_fault(run_ranks(2, [&](ForkedRank& self) {
        use_built_module();
        if (gpu::runtime() == nullptr) return std::string("no runtime");
        return body(Pair(self));
    })));
}

PeerMappings& mappings() { return PeerMappings::instance(); }

PeerMappings::Mapping* acquire_by(int device, const ExportedMemory& memory)
{
    PeerMappings::Mapping* mapping = nullptr;
    if (failed(mappings().acquire(memory, device, mapping))) throw std::runtime_error("no mapping");
    return mapping;
}

PeerMappings::Mapping* acquire(const ExportedMemory& memory) { return acquire_by(0, memory); }

bool is_cached(const ExportedMemory& memory)
{
    const std::uint64_t before = hip_sim_calls();
    mappings().release(acquire(memory));
    return hip_sim_calls() == before;
}

// Leaves bytes on the stack for the next function.
[[gnu::noinline]] void leave_on_stack(unsigned char byte)
{
    volatile unsigned char stack[8192];
    for (auto& each : stack) each = byte;
}

// Handles are compared, but a runtime writes only some of their bytes.
void test_handles_of_one_allocation(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        if (!pair.is_owner()) return "";
        std::byte* const memory = device_memory(bytes);
        leave_on_stack(1);
        const ExportedMemory first = exported(memory);
        leave_on_stack(2);
        return exported(memory).handle == first.handle ? "" : "they differ";
    }));
}

void test_bound(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        constexpr std::size_t max = PeerMappings::max_mappings;
        std::vector<ExportedMemory> all;
        for (std::size_t i = 0; i < max + 3; i++)
            all.push_back(pair.exchange(pair.is_owner() ? device_memory(4096) : nullptr));
        std::string fault;
        if (!pair.is_owner()) {
            PeerMappings::Mapping* used = acquire(all[1]);
            for (std::size_t i = 0; i < all.size(); i++) {
                mappings().release(acquire(all[i]));
                if (i + 1 == max && !is_cached(all[0]))
                    fault = "not kept";  // this use makes it the last one used
                if (mappings().size() != hip_sim_live("mappings") || mappings().size() > max)
                    fault = "too many: " + std::to_string(mappings().size());
            }
            if (!is_cached(all[1])) fault = "closed while it was in use";
            if (!is_cached(all[0])) fault = "closed though others were older";
            if (is_cached(all[2])) fault = "the oldest is still there";
            mappings().clear();
            if (hip_sim_live("mappings") != 1)
                fault = "clear() closes what is in use, or not the rest";
            mappings().release(used);
            mappings().clear();
            if (hip_sim_live("mappings") != 0) fault = "something is left";
        }
        pair.meet();
        return fault;
    }));
}

// Frees memory, and gets other memory at the same address.
std::byte* come_again(std::byte* memory)
{
    gives_success(hipFree(memory), "hipFree");
    if (device_memory(bytes) != memory) throw std::runtime_error("at another address");
    put(memory, Bytes(bytes, 42));
    return memory;
}

void test_stale_mapping(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        std::byte* const memory = pair.is_owner() ? device_memory(bytes) : nullptr;
        const ExportedMemory old = pair.exchange(memory);
        std::byte* base = nullptr;
        if (!pair.is_owner()) {
            PeerMappings::Mapping* const before = acquire(old);
            base = before->base;
            mappings().release(before);
        }
        pair.meet();
        const ExportedMemory now = pair.exchange(pair.is_owner() ? come_again(memory) : nullptr);
        std::string fault;
        if (!pair.is_owner()) {
            PeerMappings::Mapping* const after = acquire(now);
            if (get(after->base, bytes) != Bytes(bytes, 42)) fault = "what was there before";
            // The simulated runtime maps at the address that was closed last.
            if (after->base != base) fault = "the old one was open when the new one was opened";
            if (hip_sim_live("mappings") != 1) fault = "not closed";
            mappings().release(after);
            if (fault.empty() && !is_cached(now)) fault = "not kept";
        }
        pair.meet();
        return fault;
    }));
}

// Somebody still uses the old mapping. Some runtimes would now return the old mapping as the new
// one.
void test_stale_mapping_in_use(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        std::byte* const memory = pair.is_owner() ? device_memory(bytes) : nullptr;
        const ExportedMemory old = pair.exchange(memory);
        PeerMappings::Mapping* const before = pair.is_owner() ? nullptr : acquire(old);
        pair.meet();
        const ExportedMemory now = pair.exchange(pair.is_owner() ? come_again(memory) : nullptr);
        std::string fault;
        if (!pair.is_owner()) {
            PeerMappings::Mapping* after = nullptr;
            if (!failed(mappings().acquire(now, 0, after))) fault = "opened beside the old one";
            (void)get(before->base, bytes);  // throws if the memory is not mapped any more
            mappings().release(before);
            if (hip_sim_live("mappings") != 0) fault = "not closed when it was given up";
            after = acquire(now);
            if (get(after->base, bytes) != Bytes(bytes, 42)) fault = "what was there before";
            mappings().release(after);
        }
        pair.meet();
        return fault;
    }));
}

// A larger allocation comes to the place of several small ones.
void test_overlap(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        std::byte* memory = pair.is_owner() ? device_memory(4 * bytes) : nullptr;
        const ExportedMemory whole = pair.exchange(memory);
        if (pair.is_owner()) return pair.meet(), "";
        mappings().release(acquire(whole));
        // Only the cache of mappings looks at these numbers.
        ExportedMemory inside = whole;
        inside.base += bytes;
        inside.length = bytes;
        inside.id++;
        PeerMappings::Mapping* mapping = nullptr;
        const Status status = mappings().acquire(inside, 0, mapping);
        const std::size_t left = hip_sim_live("mappings");
        pair.meet();
        return !failed(status) && left == 1 ? "" : "the overlapping one stayed";
    }));
}

void test_what_cannot_be_mapped(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        ExportedMemory memory = pair.exchange(pair.is_owner() ? device_memory(bytes) : nullptr);
        std::string fault;
        if (!pair.is_owner()) {
            memory.handle.bytes[0] ^= std::byte{1};
            PeerMappings::Mapping* mapping = nullptr;
            if (!failed(mappings().acquire(memory, 0, mapping))) fault = "mapped";
            if (!ForkedRank::is_logged("mapping a peer's memory")) fault = "it does not say why";
            const auto calls = hip_sim_calls();
            if (!failed(mappings().acquire(memory, 0, mapping))) fault = "mapped the second time";
            if (hip_sim_calls() != calls) fault = "tried again";
            memory.handle.bytes[0] ^= std::byte{1};
            mappings().release(acquire(memory));
            if (mappings().size() != 1) fault = "the attempt stayed";
        }
        pair.meet();
        return fault;
    }));
}

// Attempts for more and more memory would take time and fill the log.
void test_devices_without_a_way(void**)
{
    expect_no_reason(run([](const Pair& pair) -> std::string {
        const ExportedMemory memory =
            pair.exchange(pair.is_owner() ? device_memory(bytes) : nullptr);
        std::string fault;
        for (int i = 1; !pair.is_owner() && i <= PeerMappings::max_refusals; i++) {
            ExportedMemory other = memory;
            other.handle.bytes[0] ^= static_cast<std::byte>(i);
            PeerMappings::Mapping* mapping = nullptr;
            const auto calls = hip_sim_calls();
            if (!failed(mappings().acquire(other, 0, mapping))) fault = "mapped";
            if (hip_sim_calls() == calls) fault = "not tried";
        }
        if (!pair.is_owner()) {
            PeerMappings::Mapping* mapping = nullptr;
            const auto calls = hip_sim_calls();
            if (!failed(mappings().acquire(memory, 0, mapping))) fault = "tried once more";
            if (hip_sim_calls() != calls) fault = "asked once more";
            for (unsigned i = 0; i < PeerMappings::asked_again && mapping == nullptr; i++)
                (void)mappings().acquire(memory, 0, mapping);
            if (mapping == nullptr) return "never asked again";
            mappings().release(mapping);
            mappings().clear();
            mappings().release(acquire_by(1, memory));
            const std::string lines = ForkedRank::log_lines();
            const auto line = lines.find("mapping a peer's memory");
            if (line == lines.npos || lines.find("mapping a peer's memory", line + 1) != lines.npos)
                fault = "not told once: " + lines;
        }
        pair.meet();
        return fault;
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_handles_of_one_allocation),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_stale_mapping),
        cmocka_unit_test(test_stale_mapping_in_use),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_what_cannot_be_mapped),
        cmocka_unit_test(test_devices_without_a_way),
    };
    return hier::test::run_cases(argc, argv, "peer_mappings", tests);
}
