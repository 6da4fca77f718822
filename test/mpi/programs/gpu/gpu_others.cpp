// SPDX-License-Identifier: BSD-3-Clause
// The other blocking collectives on device memory. Each call is made twice: with buffers in some kinds of memory, and
// with copies of these in plain memory, which Open MPI's own modules serve. Both must leave the same bytes, also in
// the gaps of datatypes and around the elements. After that come the calls that are refused.
#include "refusals.hpp"

using namespace hier_test;

namespace {

// Small numbers, so that sums of floats are exact and equal in any order.
Bytes content(std::mt19937& random, std::size_t bytes, bool are_floats)
{
    Bytes all(bytes);
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
        const auto value = random() % 1000;
        const auto number = static_cast<float>(value);
        const auto whole = static_cast<std::uint32_t>(value);
        std::memcpy(&all[i], are_floats ? static_cast<const void*>(&number) : &whole, 4);
    }
    return all;
}

constexpr std::size_t front = 64;

class Others {
public:
    explicit Others(Session& session) : session_(session) {}

    void run(const Collective& collective, const Call& call, Kind send_kind, Kind receive_kind,
             std::mt19937& own)
    {
        const bool are_floats = collective.is_reduction;
        const Bytes sent = content(own, room(call), are_floats);
        const Bytes before = content(own, room(call), are_floats);
        Bytes plain_send = sent, plain = before;
        session_.ok(collective.blocking(call, &plain_send[front], &plain[front], nullptr),
                    collective.name);
        const Memory send(send_kind, sent), receive(receive_kind, before);
        session_.phase("%s, %s and %s memory, %d elements%s", collective.name, name_of(send_kind),
                       name_of(receive_kind), call.count, call.in_place ? ", in place" : "");
        session_.ok(collective.blocking(call, at(send), at(receive), nullptr), collective.name);
        compare(collective, receive.read(0, plain.size()), plain, "received");
        compare(collective, send.read(0, sent.size()), plain_send, "sent");
    }

private:
    static void* at(const Memory& memory)
    {
        return static_cast<unsigned char*>(memory.data()) + front;
    }

    void compare(const Collective& collective, const Bytes& found, const Bytes& expected,
                 const char* what)
    {
        const std::string wrong = difference(found, expected);
        session_.check(wrong.empty(), "%s: %s bytes: wrong %s", collective.name, what,
                       wrong.c_str());
    }

    Session& session_;
};

// Memory that the CPU does not reach, more often than not.
Kind any_kind(std::mt19937& random)
{
    return random() % 2 == 0 ? Kind::device : static_cast<Kind>(random() % kinds);
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_others", {"expect", "min-bytes", "rounds", "seed"});
    require_hip(hipSetDevice(session.rank() % devices()), "hipSetDevice");
    MPI_Datatype gaps = MPI_DATATYPE_NULL, two = MPI_DATATYPE_NULL;
    MPI_Type_vector(3, 2, 4, MPI_INT, &gaps);
    MPI_Type_create_resized(MPI_INT, -4, 12, &two);
    MPI_Type_commit(&gaps);
    MPI_Type_commit(&two);
    const auto rounds = static_cast<int>(session.number("rounds", 6));
    const auto seed = static_cast<unsigned>(session.number("seed", 1));
    std::mt19937 random(seed), own(seed + 1000 + static_cast<unsigned>(session.rank()));
    Others others(session);
    // Round 0 has device memory alone, and each collective in place, too.
    for (int round = 0; round <= rounds; ++round) {
        for (const Collective& collective : collectives()) {
            if (collective.is_neighborhood) continue;
            const MPI_Datatype types[] = {MPI_INT, gaps, two};
            const MPI_Datatype type = collective.is_reduction ? MPI_FLOAT : types[random() % 3];
            const Call call = draw_call(random, MPI_COMM_WORLD, type, 0);
            const Call in_place = collective.can_be_in_place ? in_place_of(call) : call;
            if (round == 0) {
                others.run(collective, call, Kind::device, Kind::device, own);
                others.run(collective, in_place, Kind::device, Kind::device, own);
            } else {
                const bool is_in_place = random() % 3 == 0;
                others.run(collective, is_in_place ? in_place : call, any_kind(own), any_kind(own),
                           own);
            }
        }
    }
    MPI_Type_free(&gaps);
    MPI_Type_free(&two);
    run_refusals(session, random);
    return session.finish();
}
