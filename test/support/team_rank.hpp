// SPDX-License-Identifier: BSD-3-Clause
// A forked rank that uses the core like Open MPI's side: through hier.h alone.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "forked.hpp"
#include "hier/hier.h"

namespace hier::test {

// A configuration for tests: every rank is a node of its own, and the network is TCP over loopback.
hier_config config_for_tests();

class TeamRank {
public:
    TeamRank(ForkedRank& self, const hier_config& config);
    ~TeamRank();
    TeamRank(const TeamRank&) = delete;
    TeamRank& operator=(const TeamRank&) = delete;

    // The code of hier_team_create.
    int created() const { return created_; }
    const char* description() const { return hier_team_description(team_); }
    std::size_t min_bytes() const { return hier_team_min_bytes(team_, HIER_ALLGATHER); }

    // One allgather in memory that this object keeps to its end. Returns the code of the call, or
    // HIER_IN_PROGRESS if the call does not end. If the code is good and a byte is wrong, `wrong`
    // says which.
    int call(std::size_t bytes, std::string& wrong);
    // As above, in memory that the caller keeps: `recv` holds all shards.
    int call(std::size_t bytes, std::vector<std::byte>& send, std::byte* recv, std::string& wrong);
    // As above; `send` may be null: in place.
    int call(std::size_t bytes, std::byte* send, std::byte* recv, std::string& wrong);
    // As the first, in memory of its own, moved in parts: of each shard `part` bytes at a time.
    int call_in_parts(std::size_t bytes, std::size_t part, std::string& wrong);
    // As the first, with blocks that differ. In every second call in place.
    // `before` is called right before hier_start, `after` when the call is over.
    int call_blocks(const std::vector<hier_block>& blocks, std::string& wrong,
                    void (*before)() = nullptr, void (*after)() = nullptr);
    // As above, whatever is in the memory, which may be a device's.
    int call_raw(const std::byte* send, std::byte* recv, std::size_t bytes);
    // The two halves of call_raw. finish() takes the code that start_raw() has returned.
    int start_raw(const std::byte* send, std::byte* recv, std::size_t bytes);
    int finish(int code);
    // A call that is started again and again, in memory that this object keeps.
    struct Prepared {
        hier_request* request = nullptr;
        std::size_t bytes;
        std::byte *send, *recv;  // `send` is null in place
    };
    enum class Form { plain, in_place, blocks };
    // The code of hier_prepare. Form::blocks names the blocks, which are equal.
    int prepare(std::size_t bytes, Form form, Prepared& call);
    int start(const Prepared& call, int waiter);
    // start() and finish(), with new bytes. `between` gets the code of start().
    int call(
        const Prepared& call, std::string& wrong,
        const std::function<void(int)>& between = [](int) {});
    // The code of hier_start alone, for a team that takes no more.
    int start_only();

    // This rank takes part in no further call. Returns the team's error.
    int refuse();
    void hand_over() { hier_hand_over(team_); }
    // Destroys the team; the others may still be in it.
    void leave();
    // Waits for the others, destroys the team, waits again, and destroys all that the process
    // shares. The destructor calls it, unless leave() was called.
    void end();

private:
    // The bytes from `first` on of every shard, `moved` of them.
    struct Part {
        std::size_t first, moved;
    };
    hier_call make_call(const std::byte* send, std::byte* recv, std::size_t bytes, Part part) const;
    int start_part(const std::byte* send, std::byte* recv, std::size_t bytes, Part part);
    void fill(std::size_t bytes, std::byte* send, std::byte* recv);
    std::string wrong_byte(std::size_t bytes, const std::byte* recv) const;
    void wait_for_others();

    ForkedRank& self_;
    hier_team* team_ = nullptr;
    hier_request* request_ = nullptr;  // of the call that has been started last
    int created_ = HIER_ERR_SETUP;
    int calls_ = 0;
    bool left_ = false;
    std::list<std::vector<std::byte>> kept_;
};

}  // namespace hier::test
