// SPDX-License-Identifier: BSD-3-Clause
// When messages of small calls come: in their call, before it, and when it is over. One process plays both
// ranks, over TCP.
#include "net/ucx/lane/eager_inbox.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/log.hpp"
#include "net/ucx/lane/in_flight.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

constexpr std::size_t block = 100;

struct End {
    LaneState state{.worker = std::make_shared<UcxWorker>(NetworkChoice{"lo", "tcp"}),
                    .board = {},
                    .is_partner = {true},
                    .peers = std::vector<LanePeer>(1)};

    void bind(std::uint64_t sequence, std::vector<std::byte>& receive)
    {
        state.binding = {.sequence = sequence,
                         .send = {},
                         .receive = {receive.data(), receive.size()},
                         .eager = true,
                         .total = receive.size()};
        state.is_bound = true;
    }
};

class Pair {
public:
    Pair()
    {
        inbox_.open();
        LanePeer& peer = sender_.state.peers[0];
        peer.endpoint = sender_.state.worker->connect(receiver_.state.worker->address());
        peer.failure = address_of_board;
        name_as(0);
        peer.sink = inbox_.number();
    }
    ~Pair() { inbox_.close(); }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    void begin(std::uint64_t sequence)
    {
        receiver_.bind(sequence, received);
        inbox_.begin();
    }
    void end() { receiver_.state.is_bound = false; }
    // The sender is the rail rank of this index, as its messages say.
    void name_as(std::size_t index)
    {
        sender_.state.peers[0].board = address_of_board + (1 + index) * sizeof(RailSlot);
    }
    // The sender is in this call, or still in its set-up (0), and sends so many bytes. They are all 1.
    void send(std::uint64_t sequence, std::size_t bytes, std::size_t total = 2 * block)
    {
        sender_.state.binding.sequence = sequence;
        sender_.state.binding.total = total;
        const std::vector<std::byte> data(bytes, std::byte{1});
        (void)flights_.send_message(0, Flight::no_op, {.count = bytes == 0 ? 0u : 1u}, data.data(),
                                    bytes);
        while (flights_.awaited() > 0) progress();
    }
    // Until all that was sent is here: messages come in order. False: it does not come.
    bool deliver()
    {
        LanePeer& peer = receiver_.state.peers[0];
        name_as(0);
        peer.has_greeted = false;
        (void)flights_.send_message(0, Flight::no_op, {.sequence = MessageHead::hello}, nullptr, 0);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!peer.has_greeted && std::chrono::steady_clock::now() < end) progress();
        return peer.has_greeted;
    }
    void send_head_of(std::size_t bytes)
    {
        static const std::byte head[2 * sizeof(MessageHead)]{};
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_AM_SEND_FLAG_EAGER;
        const auto request = ucp_am_send_nbx(sender_.state.peers[0].endpoint, MessageSink::id, head,
                                             bytes, nullptr, 0, &param);
        if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    }
    const LanePeer& peer() const { return receiver_.state.peers[0]; }
    Status failure() const { return receiver_.state.own_failure; }
    bool is_untouched() const
    {
        return std::all_of(received.begin(), received.end(),
                           [](std::byte byte) { return byte == std::byte{0}; });
    }
    bool has_block() const
    {
        return std::all_of(received.begin(), received.begin() + block,
                           [](std::byte byte) { return byte == std::byte{1}; });
    }

    std::vector<std::byte> received = std::vector<std::byte>(2 * block);

private:
    static constexpr std::uint64_t address_of_board = 4096;

    void progress()
    {
        sender_.state.worker->progress(1);
        receiver_.state.worker->progress(1);
    }

    End sender_, receiver_;
    InFlight flights_{sender_.state, 4};
    EagerInbox inbox_{receiver_.state};
};

void test_in_its_call(void**)
{
    Pair pair;
    pair.begin(1);
    pair.send(1, block);
    assert_true(pair.deliver());
    assert_int_equal(pair.failure(), Status::ok);
    assert_true(pair.has_block());
    assert_int_equal(pair.peer().got, Signal::encode(1, 1));
}

void test_before_its_call(void**)
{
    Pair pair;
    for (const bool is_between : {false, true}) {
        const std::uint64_t next = is_between ? 4 : 2;
        pair.begin(next - 1);
        if (is_between) pair.end();
        pair.send(next, block);
        assert_true(pair.deliver());
        assert_true(pair.is_untouched());
        assert_int_equal(pair.peer().called, next);
        pair.end();
        pair.begin(next);
        assert_true(pair.has_block());
        assert_int_equal(pair.peer().got, Signal::encode(next, 1));
        assert_int_equal(pair.failure(), Status::ok);
        std::fill(pair.received.begin(), pair.received.end(), std::byte{0});
    }
}

// A rank that exchanges nothing on the rail in its first calls may see the drain of the set-up only now. It
// says nothing of a shape, nor does it take back what is known of the peer.
void test_drain_of_the_set_up_comes_late(void**)
{
    for (const bool is_between : {false, true}) {
        Pair pair;
        pair.begin(1);
        pair.send(1, 0);
        assert_true(pair.deliver());
        if (is_between) pair.end();
        pair.send(0, 0, 0);
        assert_true(pair.deliver());
        assert_int_equal(pair.failure(), Status::ok);
        assert_int_equal(pair.peer().called, 1);
    }
}

void test_message_of_a_call_that_is_over(void**)
{
    for (const std::uint64_t late : {0, 1, 2}) {
        Pair pair;
        pair.begin(2);
        pair.end();
        pair.send(late, block);
        assert_true(pair.deliver());
        assert_true(pair.is_untouched());
        assert_int_equal(pair.peer().called, 0);
        pair.begin(3);
        assert_true(pair.is_untouched());
        assert_int_equal(pair.peer().got, 0);
        assert_int_equal(pair.failure(), Status::ok);
    }
}

void test_another_shape(void**)
{
    for (const std::size_t bytes : {std::size_t{0}, block}) {
        Pair pair;
        pair.begin(1);
        pair.send(1, bytes, 3 * block);
        assert_true(pair.deliver());
        assert_int_equal(pair.failure(), Status::mismatch);
        assert_true(pair.is_untouched());
    }
}

void test_no_such_sender(void**)
{
    Pair pair;
    pair.begin(1);
    pair.name_as(1);
    pair.send(1, block);
    assert_true(pair.deliver());
    assert_int_equal(pair.failure(), Status::transport_error);
    assert_true(pair.is_untouched());
}

int errors = 0;

void test_no_such_head(void**)
{
    set_log(HIER_LOG_ERROR, [](int, const char*) { errors++; });
    Pair pair;
    pair.begin(1);
    assert_true(pair.deliver());
    for (const std::size_t bytes : {std::size_t{8}, sizeof(MessageHead) + 8}) {
        errors = 0;
        pair.send_head_of(bytes);
        assert_true(pair.deliver());
        assert_int_equal(errors, 1);
    }
    set_log(HIER_LOG_ERROR, nullptr);
    assert_true(pair.is_untouched());
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_in_its_call),
        cmocka_unit_test(test_before_its_call),
        cmocka_unit_test(test_drain_of_the_set_up_comes_late),
        cmocka_unit_test(test_message_of_a_call_that_is_over),
        cmocka_unit_test(test_another_shape),
        cmocka_unit_test(test_no_such_sender),
        cmocka_unit_test(test_no_such_head),
    };
    return hier::test::run_cases(argc, argv, "eager_inbox", tests);
}
