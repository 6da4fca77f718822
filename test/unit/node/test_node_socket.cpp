// SPDX-License-Identifier: BSD-3-Clause
// Messages on VMM segments, with file descriptors, from process to process.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "node/device/node_socket.hpp"
#include "team/group.hpp"
#include "test/support/forked.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

using Address = NodeSocket::Address;
using What = NodeSocket::What;

// Rank 1 tells rank 0.
struct Told {
    explicit Told(const ForkedRank& self)
        : group(self.group()), is_teller(self.rank() == 1),
          to(group.collect(NodeSocket::instance().address())[0])
    {
    }
    void meet() const { (void)group.collect(0); }
    bool receive() { return NodeSocket::instance().receive(message, descriptors); }

    Group group;
    bool is_teller;
    Address to;
    NodeSocket::Message message{};
    std::vector<int> descriptors;
};

const char* run(std::string (*body)(Told&))
{
    return keep(first_fault(run_ranks(2, [&](ForkedRank& self) {
        Told told(self);
        return body(told);
    })));
}

bool send_raw(const Address& to, const void* bytes, std::size_t count)
{
    const int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const int length =
        std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "coll_hier.%016llx",
                      static_cast<unsigned long long>(to.process));
    const auto sent = sendto(from, bytes, count, 0, reinterpret_cast<sockaddr*>(&name),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                                    static_cast<std::size_t>(length)));
    close(from);
    return sent == static_cast<ssize_t>(count);
}

void test_descriptors_arrive(void**)
{
    expect_no_reason(run([](Told& t) -> std::string {
        constexpr std::array<NodeSocket::Entry, 2> entries{{{4096, 100, 7}, {8192, 200, 9}}};
        if (t.is_teller) {
            int ends[2];
            if (pipe(ends) != 0 || write(ends[1], "hier", 4) != 4) return "no pipe";
            if (!NodeSocket::instance().send(t.to, What::mapped, entries, ends)) return "not sent";
            if (!NodeSocket::instance().send(t.to, What::unmapped, {&entries[1], 1}, {}))
                return "not sent";
        }
        t.meet();
        if (t.is_teller) return "";
        if (!t.receive() || t.message.what != What::mapped || t.message.count != 2 ||
            t.message.entries[1].base != 8192 || t.message.entries[1].id != 9 ||
            t.message.process == NodeSocket::instance().address().process)
            return "another message";
        char text[4];
        if (t.descriptors.size() != 2 || read(t.descriptors[0], text, 4) != 4 ||
            std::string(text, 4) != "hier")
            return "another file";
        if (!t.receive() || t.message.what != What::unmapped || !t.descriptors.empty() ||
            t.message.entries[0].length != 200)
            return "not in order";
        return t.receive() ? "more than was sent" : "";
    }));
}

void test_a_full_queue(void**)
{
    expect_no_reason(run([](Told& t) -> std::string {
        constexpr int far_too_many = 100000;
        int sent = 0;
        const NodeSocket::Entry entry{1, 2, 3};
        while (t.is_teller && sent < far_too_many &&
               NodeSocket::instance().send(t.to, What::unmapped, {&entry, 1}, {}))
            sent++;
        sent = t.group.collect(sent)[1];
        if (sent == 0 || sent == far_too_many) return "it has no end, or no room";
        for (int i = 0; i < sent && !t.is_teller; i++) {
            if (!t.receive()) return "one is lost";
        }
        t.meet();
        const bool has_room = !t.is_teller || NodeSocket::instance().send(t.to, What::lost, {}, {});
        t.meet();  // the receiver must live until here
        return has_room ? "" : "it stays full";
    }));
}

// Datagrams that are no messages are dropped. The last one comes from another user, if this process
// may become that user.
void test_datagrams_that_are_no_messages(void**)
{
    expect_no_reason(run([](Told& t) -> std::string {
        NodeSocket::Message forged{42, What::lost, 0, 0, 0, {}};
        const std::size_t header = offsetof(NodeSocket::Message, entries);
        if (t.is_teller) {
            forged.count = 1;
            if (!send_raw(t.to, "?", 1) || !send_raw(t.to, &forged, header)) return "not sent";
            forged.count = NodeSocket::max_entries + 1;
            if (!send_raw(t.to, &forged, sizeof forged)) return "not sent";
            forged.count = 0;
            if (geteuid() == 0 && (setuid(65534) != 0 || !send_raw(t.to, &forged, header)))
                return "not sent";
        }
        t.meet();
        return !t.is_teller && t.receive() ? "taken for a message" : "";
    }));
}

// The receiver has no room for descriptors. It still gets the message, and learns that older
// segments there are gone.
void test_no_room_for_descriptors(void**)
{
    expect_no_reason(run([](Told& t) -> std::string {
        const NodeSocket::Entry entry{1, 2, 3};
        if (t.is_teller) {
            const int file = dup(0);
            if (!NodeSocket::instance().send(t.to, What::mapped, {&entry, 1}, {&file, 1}))
                return "not sent";
        }
        t.meet();
        if (t.is_teller) return "";
        const rlimit few{64, 64};
        if (setrlimit(RLIMIT_NOFILE, &few) != 0) return "no limit";
        while (dup(0) >= 0) continue;
        if (!t.receive() || t.message.count != 1 || t.message.entries[0].id != 3)
            return "the message is lost";
        return t.descriptors.empty() ? "" : "a descriptor, where there is room for none";
    }));
}

// A process without a socket, or in another network namespace, cannot be reached. In another
// namespace its name would mean nobody, or another process.
void test_out_of_reach(void**)
{
    NodeSocket& socket = NodeSocket::instance();
    Address to = socket.address();
    assert_true(socket.reaches(to));
    assert_true(socket.send(to, What::lost, {}, {}));
    to.network++;
    assert_false(socket.send(to, What::lost, {}, {}));
    assert_false(socket.send({}, What::lost, {}, {}));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors_arrive),
        cmocka_unit_test(test_a_full_queue),
        cmocka_unit_test(test_datagrams_that_are_no_messages),
        cmocka_unit_test(test_no_room_for_descriptors),
        cmocka_unit_test(test_out_of_reach),
    };
    return hier::test::run_cases(argc, argv, "node_socket", tests);
}
