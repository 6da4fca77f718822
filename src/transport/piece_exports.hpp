// The pieces of this process that its peers may map: who has been told of which.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "transport/piece_socket.hpp"

namespace hier {

class PieceExports {
public:
    static PieceExports& instance();

    // Tells all peers of the pieces that the region lies in, unless they have been told. False: it is
    // other memory, or not all could be told: at the next call then.
    bool share(const Region& region, std::span<const PieceSocket::Address> peers,
               std::uint64_t& digest);
    // Tells of some that the application has unmapped since, so that their memory comes free.
    void look_after();
    // The peer cannot use what it was told of: it is told anew, but not for ever.
    void forget(std::uint64_t process);

private:
    struct Export {
        gpu::Piece piece;
        int device;
        bool is_refused;                                     // cannot be exported
        std::map<std::uint64_t, PieceSocket::Address> told;  // by process
    };
    using Exports = std::map<const std::byte*, Export>;  // by base

    struct Retired {
        PieceSocket::Address peer;
        std::vector<PieceSocket::Entry> pieces;
    };

    Export& find(const gpu::Piece& piece, int device);
    bool tell(std::span<const gpu::Piece> pieces, std::span<const PieceSocket::Address> peers);
    bool tell(std::span<const gpu::Piece> pieces, const PieceSocket::Address& peer,
              std::vector<int>& descriptors);
    void retire(Exports::iterator at);
    void tell_retired();

    static constexpr int most_losses = 3;

    std::mutex mutex_;
    Exports exports_;
    const std::byte* looked_at_ = nullptr;
    std::map<std::uint64_t, int> losses_;  // by process
    std::vector<gpu::Piece> pieces_;       // of the region
    std::map<std::uint64_t, Retired> retired_;
};

}  // namespace hier
