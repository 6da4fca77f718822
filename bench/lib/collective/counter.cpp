// SPDX-License-Identifier: BSD-3-Clause
#include "counter.hpp"

#include <array>
#include <cstring>
#include <limits>

namespace bench {
namespace {

struct Description {
    int bytes = 0;  // of the value; 0: this program cannot read a value of that type
    bool bound = false;
    bool continuous = false;
};

int value_bytes(MPI_Datatype type, int count)
{
    if (count != 1) {
        return 0;
    }
    if (type == MPI_UNSIGNED) {
        return static_cast<int>(sizeof(unsigned));
    }
    if (type == MPI_UNSIGNED_LONG) {
        return static_cast<int>(sizeof(unsigned long));
    }
    return type == MPI_UNSIGNED_LONG_LONG ? static_cast<int>(sizeof(unsigned long long)) : 0;
}

Description describe(int index)
{
    std::array<char, 256> name{};
    std::array<char, 256> text{};
    int name_length = static_cast<int>(name.size());
    int text_length = static_cast<int>(text.size());
    int verbosity = 0;
    int variable_class = 0;
    int bind = 0;
    int read_only = 0;
    int continuous = 0;
    int atomic = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    MPI_T_pvar_get_info(index, name.data(), &name_length, &verbosity, &variable_class, &type,
                        &values, text.data(), &text_length, &bind, &read_only, &continuous,
                        &atomic);
    return {value_bytes(type, 1), bind != MPI_T_BIND_NO_OBJECT, continuous != 0};
}

}  // namespace

Counter::Counter(const char* name)
{
    int provided = 0;
    tools_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    if (tools_) {
        open(name);
    }
}

void Counter::open(const char* name)
{
    int index = -1;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
        return;
    }
    const Description description = describe(index);
    if (description.bytes == 0 || description.bound ||
        MPI_T_pvar_session_create(&session_) != MPI_SUCCESS) {
        return;
    }
    int count = 0;
    if (MPI_T_pvar_handle_alloc(session_, index, nullptr, &handle_, &count) != MPI_SUCCESS ||
        count != 1) {
        return;
    }
    if (!description.continuous && MPI_T_pvar_start(session_, handle_) != MPI_SUCCESS) {
        return;
    }
    value_bytes_ = description.bytes;
}

std::optional<std::uint64_t> Counter::read() const
{
    std::array<std::byte, sizeof(std::uint64_t)> raw{};
    if (value_bytes_ == 0 || MPI_T_pvar_read(session_, handle_, raw.data()) != MPI_SUCCESS) {
        return std::nullopt;
    }
    if (value_bytes_ == static_cast<int>(sizeof(std::uint32_t))) {
        std::uint32_t narrow = 0;
        std::memcpy(&narrow, raw.data(), sizeof narrow);
        return narrow;
    }
    std::uint64_t wide = 0;
    std::memcpy(&wide, raw.data(), sizeof wide);
    return wide;
}

Counter::~Counter()
{
    if (handle_ != MPI_T_PVAR_HANDLE_NULL) {
        MPI_T_pvar_handle_free(session_, &handle_);
    }
    if (session_ != MPI_T_PVAR_SESSION_NULL) {
        MPI_T_pvar_session_free(&session_);
    }
    if (tools_) {
        MPI_T_finalize();
    }
}

std::optional<std::uint64_t> read(const Counter* counter)
{
    return counter != nullptr ? counter->read() : std::nullopt;
}

std::optional<std::uint64_t> fewest_counted(MPI_Comm comm, const Counter* counter,
                                            std::optional<std::uint64_t> before)
{
    const auto now = read(counter);
    const bool known = before && now;
    constexpr auto unknown = std::numeric_limits<std::uint64_t>::max();
    // The first value says whether every rank knows its counter.
    std::uint64_t fewest[2] = {known ? 1U : 0U, known ? *now - *before : unknown};
    MPI_Allreduce(MPI_IN_PLACE, fewest, 2, MPI_UINT64_T, MPI_MIN, comm);
    return fewest[0] != 0 ? std::optional(fewest[1]) : std::nullopt;
}

}  // namespace bench
