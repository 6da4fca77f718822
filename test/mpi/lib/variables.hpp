// SPDX-License-Identifier: BSD-3-Clause
// The component's performance variables, read through the MPI tools interface.
#pragma once

#include "session.hpp"

#include <map>
#include <string>

namespace hier_test {

class Variables {
public:
    explicit Variables(Session& session) : session_(session)
    {
        int provided = 0;
        session.ok(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), "MPI_T_init_thread");
        session.ok(MPI_T_pvar_session_create(&tool_), "MPI_T_pvar_session_create");
    }
    ~Variables()
    {
        while (!handles_.empty()) unbind(handles_.begin()->first);
        MPI_T_pvar_session_free(&tool_);
        MPI_T_finalize();
    }
    Variables(const Variables&) = delete;
    Variables(Variables&&) = delete;
    Variables& operator=(const Variables&) = delete;
    Variables& operator=(Variables&&) = delete;

    // `name`: behind "coll_hier_".
    void bind(const std::string& name, int variable_class)
    {
        int index = -1;
        int count = 0;
        const std::string full = "coll_hier_" + name;
        const bool is_there =
            MPI_T_pvar_get_index(full.c_str(), variable_class, &index) == MPI_SUCCESS &&
            MPI_T_pvar_handle_alloc(tool_, index, nullptr, &handles_[name], &count) ==
                MPI_SUCCESS &&
            count == 1;
        if (!session_.check(is_there, "there is no variable %s", full.c_str())) {
            handles_.erase(name);
        }
    }
    void unbind(const std::string& name)
    {
        session_.ok(MPI_T_pvar_handle_free(tool_, &handles_[name]), "MPI_T_pvar_handle_free");
        handles_.erase(name);
    }
    // Open MPI counts from bind() on.
    unsigned long long read(const std::string& name) const
    {
        unsigned long long value = 0;
        const auto handle = handles_.find(name);
        if (handle != handles_.end()) MPI_T_pvar_read(tool_, handle->second, &value);
        return value;
    }

private:
    Session& session_;
    MPI_T_pvar_session tool_{};
    std::map<std::string, MPI_T_pvar_handle> handles_;
};

}  // namespace hier_test
