// SPDX-License-Identifier: BSD-3-Clause
// Operations of which each of several transports does a part: complete when the last part is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hier/transport.hpp"

namespace hier {

class JoinedParts {
public:
    void reserve(std::size_t operations) { pending_.reserve(operations); }
    void clear() { pending_.clear(); }
    // `parts` > 0 completions of `op` will come.
    void expect(std::uint32_t op, int parts) { pending_.push_back({op, parts, Status::ok}); }

    // The parts report to this. `next` gets every operation once, with the first error of its parts.
    class Reports final : public Completions {
    public:
        Reports(JoinedParts& parts, Completions& next) : parts_(parts), next_(next) {}
        void started(std::uint32_t op) override { next_.started(op); }
        void moved_bytes() override { next_.moved_bytes(); }
        void complete(std::uint32_t op, Status status) override
        {
            if (parts_.is_last(op, status)) next_.complete(op, status);
        }

    private:
        JoinedParts& parts_;
        Completions& next_;
    };

private:
    struct Pending {
        std::uint32_t op;
        int left;
        Status status;
    };

    bool is_last(std::uint32_t op, Status& status)
    {
        const auto found = std::find_if(pending_.begin(), pending_.end(),
                                        [&](const Pending& p) { return p.op == op; });
        if (found == pending_.end()) return true;  // it has one part
        if (!failed(found->status)) found->status = status;
        if (--found->left > 0) return false;
        status = found->status;
        pending_.erase(found);
        return true;
    }

    std::vector<Pending> pending_;
};

}  // namespace hier
