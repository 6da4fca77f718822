// SPDX-License-Identifier: BSD-3-Clause
// Requests that threads leave for others: each arrives once, and those of one thread in their order.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "team/request.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

// A request of keep() never asks for its team.
class Requests {
public:
    explicit Requests(std::size_t count)
    {
        alignas(std::max_align_t) static std::byte no_team[64];
        for (std::size_t i = 0; i < count; i++)
            all.push_back(&queue_.keep({}, *reinterpret_cast<Team*>(no_team)));
    }
    std::vector<Request*> all;

private:
    RequestQueue queue_;
};

void test_the_oldest_comes_first(void**)
{
    Requests requests(3);
    PostBox box;
    assert_true(box.empty());
    for (Request* request : requests.all) box.post(*request, {});
    assert_false(box.empty());
    std::vector<Request*> taken;
    box.empty_into([&](Request& request) { taken.push_back(&request); });
    assert_true(taken == requests.all);
    assert_true(box.empty());
    for (const Request* request : taken) assert_true(request->is_running());
}

// Each thread posts its own requests in turns, and only once the last post of each has been taken.
void test_posts_of_threads_arrive_once_and_in_order(void**)
{
    constexpr std::size_t threads = 3, kept = 4, rounds = 20000;
    struct Poster {
        Requests requests{kept};
        std::atomic<std::size_t> taken{0};
    };
    std::array<Poster, threads> posters;
    PostBox box;
    std::vector<std::thread> running;
    for (Poster& poster : posters)
        running.emplace_back([&] {
            for (std::size_t i = 0; i < rounds; i++) {
                while (poster.taken + kept <= i) std::this_thread::yield();
                box.post(*poster.requests.all[i % kept], {});
            }
        });
    std::size_t wrong = 0;
    for (std::size_t left = threads * rounds; left > 0;) {
        box.empty_into([&](const Request& request) {
            left--;
            for (Poster& poster : posters)
                for (std::size_t k = 0; k < kept; k++)
                    if (poster.requests.all[k] == &request && poster.taken++ % kept != k) wrong++;
        });
    }
    for (std::thread& thread : running) thread.join();
    assert_int_equal(wrong, 0);
    for (const Poster& poster : posters) assert_int_equal(poster.taken, rounds);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_comes_first),
        cmocka_unit_test(test_posts_of_threads_arrive_once_and_in_order),
    };
    return hier::test::run_cases(argc, argv, "post_box", tests);
}
