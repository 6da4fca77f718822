// SPDX-License-Identifier: BSD-3-Clause
// The traces that the component writes (coll_hier_trace). Each rank reads its own file. The case must ask for nodes of
// equal size and for the route direct.
#include "test/mpi/lib/support.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

struct File {
    std::map<std::string, std::string> header;
    std::map<std::string, unsigned long long> number;  // by "kind level"
    std::map<std::string, unsigned long long> bytes;
    unsigned long long untimed = 0;  // operations without three times in ascending order
    unsigned long long operations = 0;
};

void read_operation(const std::string& line, File& file)
{
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) {
        fields.push_back(field);
    }
    fields.resize(12);
    const std::string what = fields[1] + " " + fields[2];
    ++file.operations;
    ++file.number[what];
    file.bytes[what] += std::strtoull(fields[8].c_str(), nullptr, 10);
    const auto time = [&](std::size_t i) {
        return fields[i].empty() ? -1 : std::strtoll(fields[i].c_str(), nullptr, 10);
    };
    if (time(9) < 0 || time(9) > time(10) || time(10) > time(11)) {
        ++file.untimed;
    }
}

bool read_file(const std::string& path, File& file)
{
    std::ifstream in(path);
    std::string line;
    while (std::getline(in, line) && line.rfind("# ", 0) == 0) {
        const std::size_t comma = line.find(',');
        if (comma != std::string::npos) {
            file.header[line.substr(2, comma - 2)] = line.substr(comma + 1);
        }
    }
    while (std::getline(in, line)) {
        read_operation(line, file);
    }
    return !file.header.empty();
}

class Traced {
public:
    Traced(Session& session, unsigned long long ranks_per_node)
        : session_(session), g_(ranks_per_node),
          n_(static_cast<unsigned long long>(session.size()) / ranks_per_node)
    {
    }

    void compare(const File& file, unsigned long long shard)
    {
        const auto chunk = std::strtoull(field(file, "chunk_bytes").c_str(), nullptr, 10);
        const unsigned long long c = chunk == 0 ? 0 : (shard + chunk - 1) / chunk;
        const unsigned long long others = n_ - 1;
        const unsigned long long peers = g_ - 1;
        const bool is_eager = field(file, "eager") == "1";
        const bool is_publish = field(file, "publish") == "1";
        const unsigned long long puts = is_publish ? (peers > 0 ? 1 : 0) : peers;
        const unsigned long long announcements =
            (is_eager ? 0 : others) + (is_publish || peers == 0 ? 0 : 1);
        const unsigned long long before = announcements + peers + others;
        const unsigned long long moving = (others * c + c * puts + c) + others * c * (1 + puts);
        session_.check(is_eager == (shard <= 8192) && is_publish == (is_eager && peers > 0),
                       "the header says eager %d, publish %d", is_eager, is_publish);
        equal(file.operations, before + moving + peers + others, "operations");
        equal(count(file.number, "put rail"), others * c, "rail puts");
        equal(count(file.number, "await_data rail"), others * c, "waits for chunks");
        equal(count(file.number, "copy node"), c, "copies");
        equal(count(file.bytes, "put rail"), others * shard, "bytes put on the rail");
        equal(count(file.bytes, "put node"), puts * n_ * shard, "bytes pushed in the node");
        equal(file.untimed, 0, "operations without times in order");
        session_.check(field(file, "rank") == std::to_string(session_.rank()) &&
                           field(file, "status") == "success",
                       "a wrong header");
        unsigned long long out = count(file.bytes, "put rail");
        MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        equal(out, n_ * others * g_ * shard, "bytes between the nodes");
    }

private:
    static unsigned long long count(const std::map<std::string, unsigned long long>& in,
                                    const char* what)
    {
        const auto found = in.find(what);
        return found == in.end() ? 0 : found->second;
    }
    static std::string field(const File& file, const char* name)
    {
        const auto found = file.header.find(name);
        return found == file.header.end() ? "" : found->second;
    }
    void equal(unsigned long long found, unsigned long long expected, const char* what)
    {
        session_.check(found == expected, "%s: %llu, not %llu", what, found, expected);
    }

    Session& session_;
    unsigned long long g_, n_;  // ranks of a node, nodes
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "trace",
                    {"expect", "min-bytes", "ranks-per-node", "writable", "bytes"});
    Observer observer(session);
    constexpr int calls = 3;  // the second call is traced
    const auto bytes = static_cast<std::size_t>(session.number("bytes", 300001));
    const char* prefix = std::getenv("OMPI_MCA_coll_hier_trace");
    if (prefix == nullptr) {
        session.usage("needs the MCA variable coll_hier_trace");
    }

    std::vector<unsigned char> send(bytes);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(session.size()));
    MPI_Comm world;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_set_name(world, "traced: a/b");
    for (int call = 1; call <= calls; ++call) {
        Pattern(session.rank(), call).fill(send.data(), bytes);
        session.ok(observer.allgather(send.data(), static_cast<int>(bytes), MPI_BYTE,
                                      receive.data(), static_cast<int>(bytes), MPI_BYTE, world),
                   "MPI_Allgather");
        check_blocks(session, receive.data(), bytes, session.size(), call, "traced");
    }
    MPI_Comm_free(&world);

    File file;
    const std::string begin =
        std::string(prefix) + ".traced__a_b." + std::to_string(session.rank());
    const bool is_there = read_file(begin + ".2.csv", file);
    if (session.number("writable", 1) == 0) {
        session.check(!is_there, "a file where none can be");
    } else if (session.check(is_there, "no file %s.2.csv", begin.c_str())) {
        Traced(session, static_cast<unsigned long long>(session.number("ranks-per-node", 1)))
            .compare(file, bytes);
        File other;
        session.check(!read_file(begin + ".1.csv", other) && !read_file(begin + ".3.csv", other),
                      "a trace of another call");
    }
    return session.finish();
}
