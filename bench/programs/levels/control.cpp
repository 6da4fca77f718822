// SPDX-License-Identifier: BSD-3-Clause
#include "control.hpp"

#include <array>

namespace bench {
namespace {

bool is_one_int(int index)
{
    std::array<char, 256> name{};
    std::array<char, 1024> text{};
    int name_length = static_cast<int>(name.size());
    int text_length = static_cast<int>(text.size());
    int verbosity = 0;
    int bind = 0;
    int scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    return MPI_T_cvar_get_info(index, name.data(), &name_length, &verbosity, &type, &values,
                               text.data(), &text_length, &bind, &scope) == MPI_SUCCESS &&
           type == MPI_INT && bind == MPI_T_BIND_NO_OBJECT;
}

}  // namespace

Control::Control(const char* name)
{
    int provided = 0;
    int index = -1;
    int count = 0;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    tools_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    if (tools_ && MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && is_one_int(index) &&
        MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS && count == 1) {
        handle_ = handle;
    }
}

std::optional<int> Control::read() const
{
    int value = 0;
    return handle_ != MPI_T_CVAR_HANDLE_NULL && MPI_T_cvar_read(handle_, &value) == MPI_SUCCESS
               ? std::optional(value)
               : std::nullopt;
}

bool Control::write(int value) const
{
    return handle_ != MPI_T_CVAR_HANDLE_NULL && MPI_T_cvar_write(handle_, &value) == MPI_SUCCESS;
}

Control::~Control()
{
    MPI_T_cvar_handle handle = handle_;
    if (handle != MPI_T_CVAR_HANDLE_NULL) {
        MPI_T_cvar_handle_free(&handle);
    }
    if (tools_) {
        MPI_T_finalize();
    }
}

}  // namespace bench
