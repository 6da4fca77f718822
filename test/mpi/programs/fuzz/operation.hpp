// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "test/mpi/lib/large_counts.hpp"
#include "test/mpi/lib/support.hpp"
#include "typed_buffer.hpp"

namespace hier_test::fuzz {

// One allgather of either form: its arguments, its buffers, and what must be in them afterwards. It
// can be called in each manner, and with new contents each time. The buffers and the lists of counts
// live as long as the object, so no call of it may be in flight at its end.
class Operation {
public:
    // `sizes` has the bytes of each rank. `send` is nullptr: in place.
    Operation(CountedCollective collective, MPI_Comm comm, std::vector<std::size_t> sizes,
              std::unique_ptr<TypedBuffer> receive, std::unique_ptr<TypedBuffer> send);

    // All ranks ask a second opinion, and this root gathers it. -1: none.
    void ask(int root) { asked_root_ = root; }
    bool asks() const { return asked_root_ >= 0; }
    // For messages: the shape of the sizes.
    void name_shape(const char* name) { shape_ = name; }
    // The datatypes of the calls are duplicates, and are freed as soon as a call returns.
    void free_types_early() { frees_types_ = true; }

    // The ranks send the patterns of this number from now on.
    void fill(int pattern);
    int call();
    int start(MPI_Request* request);
    int init(MPI_Request* request);  // of a persistent request
    int call(Manner manner, MPI_Request* request);

    // What is wrong in the buffers after a call, or "".
    std::string difference();
    // What the second opinion says, or "". All ranks have to ask.
    std::string opinion() const;
    // Overwrites both buffers. After that, late() tells what has been written since, or "".
    void clear();
    std::string late();
    // Changes a byte of the result.
    void corrupt() { receive_->corrupt(); }

    MPI_Comm comm() const { return comm_; }
    CountedCollective collective() const { return collective_; }
    std::size_t total_bytes() const;
    // hier serves a call with bytes on more than one rank.
    bool is_counted() const { return sizes_.size() > 1 && total_bytes() > 0; }
    TypedBuffer& receive() { return *receive_; }
    std::string text(Manner manner = Manner::blocking) const;

private:
    struct Types {
        MPI_Datatype send, receive;
    };
    Types types() const;
    // Equal on all ranks: every second size goes through the calls with 64-bit counts, if there are any.
    bool has_large_counts_now() const { return has_large_counts && mix(total_bytes()) % 2 == 0; }
    int call(Manner manner, const Types& type, MPI_Request* request);
    int call_with_large_counts(Manner manner, const Types& type, MPI_Request* request);
    Content content_of(int rank) const
    {
        return Pattern(rank, pattern_).bytes(sizes_[static_cast<std::size_t>(rank)]);
    }
    const void* send_address() { return send_ ? send_->address() : MPI_IN_PLACE; }
    int send_count() const { return send_ ? send_->count() : 0; }

    CountedCollective collective_;
    MPI_Comm comm_;
    int rank_;
    std::vector<std::size_t> sizes_;
    std::unique_ptr<TypedBuffer> receive_;
    std::unique_ptr<TypedBuffer> send_;
    LargeArguments large_{};  // of the last call
    int pattern_ = 0;
    const char* shape_ = "";
    int asked_root_ = -1;
    bool frees_types_ = false;
};

}  // namespace hier_test::fuzz
