// SPDX-License-Identifier: BSD-3-Clause
// The table of what a process exports: its words, its changes, and descriptors that another process
// takes.
#include "node/device/exports/export_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.hpp"
#include "node/device/imports/peer_table.hpp"
#include "test/support/forked.hpp"
#include "test/support/own_table.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

using Kind = ExportEntry::Kind;

void test_words(void**)
{
    const ExportEntry entry{4096, 100, 7, 12, Kind::allocation};
    const auto parsed = parse_export(words_of(entry));
    assert_true(parsed && parsed->is_same(entry) && parsed->descriptor == 12);
    const ExportEntry closed{4096, 100, 7, -1, Kind::segment};
    assert_int_equal(parse_export(words_of(closed))->descriptor, -1);
    assert_false(closed.is_same(entry));
    const std::uint64_t segment = std::uint64_t{1} << 32;
    const ExportWords wrong[] = {
        {4096, 0, 7, segment},                    // no bytes
        {4096, UINT64_MAX - 4095, 7, segment},    // beyond the last address
        {UINT64_MAX, 1, 7, segment},              // the same
        {4096, 100, 7, 3},                        // no kind
        {4096, 100, 7, 3 * segment},              // another kind
        {4096, 100, 7, segment | 0x80000000u},    // no descriptor
        {4096, 100, 7, segment | (0xfffffffeu)},  // -2
        {0, 0, 0, 0},
    };
    for (const ExportWords& words : wrong) assert_false(parse_export(words).has_value());
    assert_true(parse_export({4096, UINT64_MAX - 4096, 7, segment}).has_value());
}

void test_changes(void**)
{
    ExportTable& table = ExportTable::instance();
    const ExportEntry one{4096, 100, 7, 3}, other{8192, 100, 8};
    const ExportEntry both[] = {one, other};
    const std::uint64_t first = table.change(both, {});
    assert_true(first > 0 && first % 2 == 0 && own_table().version == first);
    assert_int_equal(own_table().count, 2);
    const ExportEntry closed{4096, 100, 7, -1};
    const std::uint64_t second = table.change({&closed, 1}, {&other, 1});
    assert_true(second > first && own_table().version == second && own_table().count == 1);
    assert_int_equal(entry_at(0).descriptor, -1);

    std::vector<ExportEntry> many(ExportMemory::max_entries);
    for (std::size_t i = 0; i < many.size(); i++) many[i] = {i + 1, 1, i + 100};
    assert_int_equal(table.change(many, {}), 0);
    assert_true(own_table().version == second && own_table().count == 1);
    assert_true(table.change(many, {&closed, 1}) > second);
    assert_int_equal(own_table().count, ExportMemory::max_entries);
    assert_true(table.change({}, many) > second);
    assert_int_equal(own_table().count, 0);
}

// The rows that answer peers.
void test_answers(void**)
{
    ExportTable& table = ExportTable::instance();
    for (std::uint64_t process = 1; process <= ExportMemory::max_peers; process++)
        assert_true(table.say_seen(process, 2 * process));
    assert_false(table.say_seen(ExportMemory::max_peers + 1, 2));
    assert_false(table.say_lost(ExportMemory::max_peers + 1));
    assert_true(table.say_lost(5));
    assert_true(table.say_seen(5, 20));
    const ExportMemory::Seen& row = own_table().seen[4];
    assert_true(row.process == 5 && row.version == 20 && row.losses == 1);
}

const char* run(const std::function<std::string(const Group&, PeerTable*)>& body)
{
    return keep(first_fault(run_ranks(2, [&](ForkedRank& self) {
        const Group group = self.group();
        const auto addresses = group.collect(ExportTable::instance().address());
        PeerTable* const own = PeerTable::open(addresses[static_cast<std::size_t>(self.rank())]);
        if (own != nullptr) return std::string("its own table");
        PeerTable* const table = PeerTable::open(addresses[self.rank() == 0 ? 1 : 0]);
        if (table == nullptr) return std::string("no table");
        const std::string fault = body(group, table);
        (void)group.collect(0);
        return fault;
    })));
}

void test_pull(void**)
{
    expect_no_reason(run([](const Group& group, PeerTable* table) -> std::string {
        if (const std::string refusal = table->try_pull(); !refusal.empty()) return refusal;
        int ends[2];
        if (pipe(ends) != 0 || write(ends[1], "hier", 4) != 4) return "no pipe";
        const auto all = group.collect(ends[0]);
        const int taken = table->pull(all[group.rank() == 0 ? 1 : 0]);
        (void)group.collect(0);
        close(ends[0]);
        char text[4];
        if (taken < 0 || read(taken, text, 4) != 4 || std::string(text, 4) != "hier")
            return "another file";
        if (fcntl(taken, F_GETFD) != FD_CLOEXEC) return "not closed on exec";
        if (table->pull(9999) != -1 || errno != EBADF) return "a file that is not there";
        getfd_call.fail_nth(1, EPERM);
        return table->try_pull().find("not permitted") != std::string::npos ? "" : "not refused";
    }));
}

// Peers can only read a table.
void test_peers_cannot_write(void**)
{
    expect_no_reason(run([](const Group&, PeerTable* table) -> std::string {
        const int file = ::open("/proc/self/maps", O_RDONLY);
        std::string maps;
        char some[4096];
        for (ssize_t n = 0; (n = read(file, some, sizeof some)) > 0;)
            maps.append(some, static_cast<std::size_t>(n));
        close(file);
        const std::string inode = " " + std::to_string(table->process()) + " ";
        const std::size_t at = maps.find(inode);
        if (at == std::string::npos) return "not mapped";
        const std::string line = maps.substr(maps.rfind('\n', at) + 1, 60);
        return line.find(" r--s ") != std::string::npos ? "" : line;
    }));
}

// The path of a table may lead to another file.
void test_another_file(void**)
{
    expect_no_reason(run([](const Group& group, PeerTable*) -> std::string {
        ExportTable::Address address =
            group.collect(ExportTable::instance().address())[group.rank() == 0 ? 1 : 0];
        address.memory.inode++;
        try {
            const PeerTable other(address);
            return "mapped";
        } catch (const SetupError& e) {
            const std::string cause = e.what();
            return cause.find("another one") != std::string::npos ? "" : cause;
        }
    }));
}

void test_owner_that_dies(void**)
{
    const Ends ends = run_ranks(2, [](ForkedRank& self) -> std::string {
        const Group group = self.group();
        const auto addresses = group.collect(ExportTable::instance().address());
        PeerTable* const table = PeerTable::open(addresses[self.rank() == 0 ? 1 : 0]);
        if (table == nullptr) return "no table";
        (void)group.collect(0);
        if (self.rank() == 1) return "";
        const bool is_gone = await([&] { return table->pull(addresses[1].descriptor) < 0; });
        return is_gone && errno == ESRCH ? "" : "a descriptor of nobody";
    });
    assert_string_equal(first_fault(ends).c_str(), "");
}

}  // namespace

int main(int argc, char** argv)
{
    // The forked ranks come first, because a process that has a table hands it to its children.
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_pull),         cmocka_unit_test(test_peers_cannot_write),
        cmocka_unit_test(test_another_file), cmocka_unit_test(test_owner_that_dies),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_answers),
    };
    return hier::test::run_cases(argc, argv, "export_table", tests);
}
