// SPDX-License-Identifier: BSD-3-Clause
#include "refusals.hpp"

#include "captured_errors.hpp"

namespace hier_test {

namespace {

// One form of a collective that is refused, and one that gives the right result in memory of the
// host.
struct Form {
    const char* name;
    const Collective& collective;
    const Collective::Run& run;
    const Collective::Run& reference;
    bool is_persistent;
};

std::vector<Form> refused_forms(int ranks)
{
    std::vector<Form> forms;
    for (const Collective& one : collectives()) {
        if (one.is_neighborhood) {
            forms.push_back({one.name, one, one.blocking, one.nonblocking, false});
        }
        if (!one.has_all_manners) continue;
        // Alone, a broadcast has nothing to do, and Open MPI itself ends it.
        if (ranks == 1 && one.send == Uses::none) continue;
        forms.push_back({one.nonblocking_name, one, one.nonblocking, one.blocking, false});
        if (one.persistent) {
            forms.push_back({one.persistent_name, one, one.persistent, one.blocking, true});
        }
    }
    return forms;
}

// The kinds of a call's two buffers on this rank.
struct Kinds {
    Kind send, receive;
    bool is_refused;
};

// The buffers that are device memory mean something on all ranks or on none. Otherwise some ranks
// would wait for those that refuse.
std::vector<Kinds> kinds_of(const Collective& collective, const Call& call)
{
    std::vector<Kinds> all;
    all.push_back({Kind::device, Kind::device, true});
    all.push_back({Kind::pool, Kind::mapped, true});
    all.push_back({Kind::pageable, Kind::pageable, false});
    all.push_back({Kind::pinned, Kind::managed, false});
    if (collective.send == Uses::all && !call.in_place) {
        all.push_back({Kind::device, Kind::pageable, true});
    }
    const bool is_used_by_all = !call.in_place || collective.send != Uses::root;
    if (collective.receive == Uses::all && is_used_by_all) {
        all.push_back({Kind::pageable, Kind::device, true});
    }
    const auto unused = [&call](Uses uses) {
        return uses == Uses::none || (uses == Uses::root && !call.is_root()) ? Kind::device
                                                                             : Kind::pageable;
    };
    all.push_back({unused(collective.send), unused(collective.receive), false});
    return all;
}

class Refusals {
public:
    Refusals(Session& session, std::mt19937& random) : session_(session), random_(random)
    {
        // The graph: each rank sends to the next one.
        const int next = (session.rank() + 1) % session.size();
        const int last = (session.rank() + session.size() - 1) % session.size();
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, MPI_UNWEIGHTED, 1, &next,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm_);
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    }
    ~Refusals() { MPI_Comm_free(&comm_); }
    Refusals(const Refusals&) = delete;
    Refusals& operator=(const Refusals&) = delete;

    void run(const Form& form)
    {
        for (const bool in_place : {false, true}) {
            if (in_place && !form.collective.can_be_in_place) continue;
            const MPI_Datatype type = form.collective.is_reduction ? MPI_FLOAT : MPI_INT;
            const Call drawn = draw_call(random_, comm_, type, 1);
            const Call call = in_place ? in_place_of(drawn) : drawn;
            for (const Kinds& kinds : kinds_of(form.collective, call)) {
                session_.phase("%s, %s and %s memory%s", form.name, name_of(kinds.send),
                               name_of(kinds.receive), in_place ? ", in place" : "");
                run_one(form, call, kinds);
            }
        }
    }

private:
    static constexpr std::size_t front = 64;

    static void* at(const Memory& memory) { return memory.data() + front; }

    void run_one(const Form& form, const Call& call, const Kinds& kinds)
    {
        const Bytes sent = numbers(call), before = numbers(call);
        const Memory send(kinds.send, sent), receive(kinds.receive, before);
        Bytes expected = before;
        if (kinds.is_refused) {
            refused(form, call, at(send), at(receive));
        } else {
            Bytes from = sent;
            finish(form, form.reference, call, &from[front], &expected[front]);
            finish(form, form.run, call, at(send), at(receive));
        }
        compare(form, "receive buffer", receive.read(0, expected.size()), expected);
        compare(form, "send buffer", send.read(0, sent.size()), sent);
    }

    // Floats that are small integers. Other types take the same bytes.
    Bytes numbers(const Call& call)
    {
        Bytes all(room(call));
        for (std::size_t i = 0; i + sizeof(float) <= all.size(); i += sizeof(float)) {
            const auto number = static_cast<float>(own_() % 1000);
            std::memcpy(&all[i], &number, sizeof number);
        }
        return all;
    }

    void refused(const Form& form, const Call& call, void* send, void* receive)
    {
        MPI_Request request = MPI_REQUEST_NULL;
        CapturedErrors errors;
        const int code = form.run(call, send, receive, &request);
        const std::string said = errors.end();
        int found = MPI_SUCCESS;
        MPI_Error_class(code, &found);
        session_.check(found == MPI_ERR_UNSUPPORTED_OPERATION, "%s: error class %d, not %d",
                       form.name, found, MPI_ERR_UNSUPPORTED_OPERATION);
        session_.check(request == MPI_REQUEST_NULL, "%s: a refused call leaves a request",
                       form.name);
        session_.check(is_refusal_of(form, said), "%s: the line of the refusal is '%s'", form.name,
                       said.c_str());
    }

    // One line, which names the call and what to use instead.
    static bool is_refusal_of(const Form& form, const std::string& said)
    {
        return said.find(std::string("coll:hier: ") + form.name + " on ") != std::string::npos &&
               said.find("a buffer is device memory") != std::string::npos &&
               said.find("Open MPI 5 or 6 built with CUDA or ROCm") != std::string::npos &&
               (said.find("the blocking call") == std::string::npos) ==
                   form.collective.is_neighborhood &&
               said.find('\n') + 1 == said.size();
    }

    void finish(const Form& form, const Collective::Run& run, const Call& call, void* send,
                void* receive)
    {
        // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): it does not see what starts the request
        MPI_Request request = MPI_REQUEST_NULL;
        session_.ok(run(call, send, receive, &request), form.name);
        if (&run == &form.run && form.is_persistent) {
            session_.ok(MPI_Start(&request), form.name);
            session_.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), form.name);
            session_.ok(MPI_Request_free(&request), form.name);
        }
        session_.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), form.name);
        // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
    }

    void compare(const Form& form, const char* buffer, const Bytes& found, const Bytes& expected)
    {
        const std::string wrong = difference(found, expected);
        session_.check(wrong.empty(), "%s: %s: wrong %s", form.name, buffer, wrong.c_str());
    }

    Session& session_;
    std::mt19937& random_;  // equal on all ranks
    std::mt19937 own_{static_cast<unsigned>(session_.rank())};
    MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

void run_refusals(Session& session, std::mt19937& random)
{
    Refusals refusals(session, random);
    for (const Form& form : refused_forms(session.size())) {
        refusals.run(form);
    }
}

}  // namespace hier_test
