// SPDX-License-Identifier: BSD-3-Clause
// Requests that threads leave for others: each arrives once, and those of one thread and of one team in their order.
#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "team/post_box.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

// Nobody looks into these teams.
Team& team(std::size_t i)
{
    alignas(std::max_align_t) static std::byte teams[2];
    return *reinterpret_cast<Team*>(&teams[i]);
}

class Requests {
public:
    // One for each of `teams`.
    explicit Requests(const std::vector<std::size_t>& teams)
    {
        for (const std::size_t i : teams) all.push_back(&queue_.keep({}, team(i)));
    }
    void post_all(PostBox& box) const
    {
        for (Request* request : all) box.post(*request, {});
    }
    std::vector<Request*> all;

private:
    RequestQueue queue_;
};

std::vector<Request*> take_all(PostBox& box)
{
    std::vector<Request*> taken;
    box.offer([&](Request& request) {
        taken.push_back(&request);
        return true;
    });
    return taken;
}

std::vector<Request*> take_of(PostBox& box, std::size_t i)
{
    std::vector<Request*> taken;
    box.offer([&](Request& request) {
        if (&request.team() == &team(i)) taken.push_back(&request);
        return &request.team() == &team(i);
    });
    return taken;
}

void test_the_oldest_comes_first(void**)
{
    const Requests requests({0, 0, 0});
    PostBox box;
    assert_false(box.has_posts());
    requests.post_all(box);
    assert_true(box.has_posts());
    for (const Request* request : requests.all) assert_true(request->is_running());
    assert_true(take_all(box) == requests.all);
    assert_false(box.has_posts());
}

void test_posts_that_nobody_takes_stay_in_order(void**)
{
    const Requests requests({0, 1, 1, 0, 1}), later({0, 1});
    PostBox box;
    requests.post_all(box);
    assert_true(take_of(box, 1) ==
                (std::vector{requests.all[1], requests.all[2], requests.all[4]}));
    assert_true(box.has_posts());
    later.post_all(box);
    assert_true(take_of(box, 1) == std::vector{later.all[1]});
    assert_true(take_all(box) == (std::vector{requests.all[0], requests.all[3], later.all[0]}));
    assert_false(box.has_posts());
}

// The lock of a team may become free while its posts are offered.
void test_a_post_does_not_overtake_one_of_its_team(void**)
{
    const Requests requests({0, 1, 0});
    PostBox box;
    requests.post_all(box);
    std::vector<Request*> taken;
    box.offer([&](Request& request) {
        if (&request == requests.all[0]) return false;
        taken.push_back(&request);
        return true;
    });
    assert_true(taken == std::vector{requests.all[1]});
    assert_true(take_all(box) == (std::vector{requests.all[0], requests.all[2]}));
}

// Each thread posts its own requests in turns, when their last post has been taken.
void test_posts_of_threads_arrive_once_and_in_order(void**)
{
    constexpr std::size_t threads = 3, kept = 4, rounds = 20000;
    struct Poster {
        Requests requests{{0, 0, 0, 0}};
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
    std::size_t wrong = 0, offers = 0;
    for (std::size_t left = threads * rounds; left > 0;) {
        box.offer([&](const Request& request) {
            if (++offers % 7 == 0) return false;  // comes again
            left--;
            for (Poster& poster : posters)
                for (std::size_t k = 0; k < kept; k++)
                    if (poster.requests.all[k] == &request && poster.taken++ % kept != k) wrong++;
            return true;
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
        cmocka_unit_test(test_posts_that_nobody_takes_stay_in_order),
        cmocka_unit_test(test_a_post_does_not_overtake_one_of_its_team),
        cmocka_unit_test(test_posts_of_threads_arrive_once_and_in_order),
    };
    return hier::test::run_cases(argc, argv, "post_box", tests);
}
