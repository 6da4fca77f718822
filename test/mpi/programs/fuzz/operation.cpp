// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

#include "opinion.hpp"
#include "test/mpi/lib/persistent.hpp"

#include <algorithm>
#include <numeric>

namespace hier_test::fuzz {

Operation::Operation(CountedCollective collective, MPI_Comm comm, std::vector<std::size_t> sizes,
                     std::unique_ptr<TypedBuffer> receive, std::unique_ptr<TypedBuffer> send)
    : collective_(collective), comm_(comm), rank_(rank_of(comm)), sizes_(std::move(sizes)),
      receive_(std::move(receive)), send_(std::move(send))
{
}

void Operation::fill(int pattern)
{
    pattern_ = pattern;
    receive_->clear_image();
    if (send_) {
        send_->clear_image();
        send_->put(0, content_of(rank_));
        send_->upload();
    } else {
        receive_->put(rank_, content_of(rank_));
    }
    receive_->upload();
}

Operation::Types Operation::types() const
{
    Types types{send_ ? send_->type() : MPI_DATATYPE_NULL, receive_->type()};
    if (frees_types_) {
        if (send_) MPI_Type_dup(send_->type(), &types.send);
        MPI_Type_dup(receive_->type(), &types.receive);
    }
    return types;
}

int Operation::call_with_large_counts(Manner manner, const Types& type, MPI_Request* request)
{
    const Blocks& to = receive_->blocks();
    large_ = {send_address(),
              send_count(),
              type.send,
              receive_->address(),
              {to.items.begin(), to.items.end()},
              {to.displacements.begin(), to.displacements.end()},
              type.receive};
    if (collective_ == CountedCollective::allgather) large_.counts = {receive_->count()};
    return call_large(collective_, manner, large_, comm_, request);
}

int Operation::call(Manner manner, const Types& type, MPI_Request* request)
{
    const Blocks& to = receive_->blocks();
    const bool is_v = collective_ == CountedCollective::allgatherv;
    switch (manner) {
    case Manner::blocking:
        return is_v ? MPI_Allgatherv(send_address(), send_count(), type.send, receive_->address(),
                                     to.items.data(), to.displacements.data(), type.receive, comm_)
                    : MPI_Allgather(send_address(), send_count(), type.send, receive_->address(),
                                    receive_->count(), type.receive, comm_);
    case Manner::nonblocking:
        return is_v ? MPI_Iallgatherv(send_address(), send_count(), type.send, receive_->address(),
                                      to.items.data(), to.displacements.data(), type.receive, comm_,
                                      request)
                    : MPI_Iallgather(send_address(), send_count(), type.send, receive_->address(),
                                     receive_->count(), type.receive, comm_, request);
    case Manner::persistent:
        return is_v ? allgatherv_init(send_address(), send_count(), type.send, receive_->address(),
                                      to.items.data(), to.displacements.data(), type.receive, comm_,
                                      request)
                    : allgather_init(send_address(), send_count(), type.send, receive_->address(),
                                     receive_->count(), type.receive, comm_, request);
    }
    return MPI_ERR_OTHER;
}

int Operation::call(Manner manner, MPI_Request* request)
{
    Types type = types();
    const int status = has_large_counts_now() ? call_with_large_counts(manner, type, request)
                                              : call(manner, type, request);
    if (frees_types_) {
        if (send_) MPI_Type_free(&type.send);
        MPI_Type_free(&type.receive);
    }
    return status;
}

int Operation::call() { return call(Manner::blocking, nullptr); }

int Operation::start(MPI_Request* request) { return call(Manner::nonblocking, request); }

int Operation::init(MPI_Request* request) { return call(Manner::persistent, request); }

std::string Operation::difference()
{
    for (std::size_t rank = 0; rank < sizes_.size(); ++rank) {
        receive_->put(static_cast<int>(rank), content_of(static_cast<int>(rank)));
    }
    const std::string received = receive_->difference();
    const std::string sent = send_ ? send_->difference() : "";
    return !received.empty() ? "receive buffer, " + received
           : !sent.empty()   ? "send buffer, " + sent
                             : "";
}

std::string Operation::opinion() const
{
    return !asks() ? ""
                   : second_opinion(comm_, send_ ? *send_ : *receive_, send_ ? 0 : rank_, sizes_,
                                    asked_root_, pattern_);
}

void Operation::clear()
{
    receive_->clear();
    if (send_) send_->clear();
}

std::string Operation::late()
{
    const std::string received = receive_->difference();
    return !received.empty() ? "receive buffer, written after the end, " + received
           : send_           ? send_->difference()
                             : "";
}

std::size_t Operation::total_bytes() const
{
    return std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0});
}

std::string Operation::text(Manner manner) const
{
    const bool is_equal = collective_ == CountedCollective::allgather;
    std::string sizes;
    for (const std::size_t size : sizes_) {
        sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
        if (is_equal) break;
    }
    const std::string shape = *shape_ == '\0' ? "" : std::string(" (") + shape_ + ")";
    return counted_name(counted(collective_, manner)) + shape + " of " + sizes +
           (is_equal ? " bytes a rank on " : " bytes on ") + std::to_string(sizes_.size()) +
           " ranks, " + (send_ ? send_->text() : "in place") + " to " + receive_->text() +
           (has_large_counts_now() ? ", with large counts" : "");
}

}  // namespace hier_test::fuzz
