// SPDX-License-Identifier: BSD-3-Clause
// Constraints on the network from hier's variables, from UCX's and from Open MPI's.
#include <string>
#include <vector>

#include "net/devices/network_constraints.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct Said {
    const char* devices;  // of hier's variable
    const char* transports;
    const char* of_ucx;
    const char* tls;
    const char* wanted;  // expected devices and transports
};

// UCX's variables count where hier's say nothing.
void test_variables_of_ucx(void**)
{
    for (const Said& s : {
             Said{"auto", "auto", nullptr, nullptr, "auto auto"},
             Said{"auto", "auto", "all", "all", "auto auto"},
             Said{"auto", "auto", "mlx5_1:1", "", "mlx5_1:1 auto"},
             Said{"eth0", "tcp", "mlx5_1:1", "rc", "eth0 tcp"},
             Said{"auto", "auto", "mlx5_[0-2]:1,eth[10-11]", nullptr,
                  "mlx5_0:1,mlx5_1:1,mlx5_2:1,eth10,eth11 auto"},
             Said{"auto", "auto", "mlx5_[2-0]:1", nullptr, "mlx5_[2-0]:1 auto"},
             Said{"auto", "auto", "mlx5_[0-9999999]:1", nullptr, "mlx5_[0-9999999]:1 auto"},
             Said{"auto", "auto", nullptr, "rc,sm,self,cuda_copy", "auto auto"},
             Said{"auto", "auto", nullptr, "self,ib", "auto auto"},
             Said{"auto", "auto", nullptr, "dc_x,sm", "auto auto"},
             Said{"auto", "auto", nullptr, "tcp,sm,self", "auto tcp"},
             Said{"auto", "auto", nullptr, "ud,sm,self", "auto auto"},
             Said{"auto", "auto", nullptr, "self,sm,ud:aux", "auto auto"},
             Said{"eth0,eth1", "auto", nullptr, "tcp,sm,self", "eth0,eth1 auto"},
             Said{"eth[0-1]", "auto", nullptr, nullptr, "eth0,eth1 auto"},
             Said{"auto", "auto", "^mlx5_[0-1]:1", nullptr, "^mlx5_0:1,mlx5_1:1 auto"},
             Said{"auto", "auto", nullptr, "sm,self", "auto auto"},
             Said{"auto", "auto", nullptr, "^ud", "auto auto"},
             Said{"auto", "auto", nullptr, "^dc_x", "auto auto"},
             Said{"auto", "auto", nullptr, "^rc", "auto tcp"},
             Said{"auto", "auto", nullptr, "^ib,sm", "auto tcp"},
             Said{"auto", "auto", nullptr, "^tcp", "auto ^tcp"},
             Said{"auto", "auto", nullptr, "^ud,tcp", "auto ^tcp"},
             Said{"auto", "rc", nullptr, "^tcp", "auto rc"},
             Said{"auto", "rc", nullptr, "^rc", "auto rc"},
         }) {
        const NetworkSettings found =
            with_variables_of_ucx({s.devices, s.transports, 1}, s.of_ucx, s.tls);
        const std::string text = found.devices + ' ' + found.transports;
        expect_no_reason(text == s.wanted ? nullptr : keep(text + ", not " + s.wanted));
    }
}

// Faster networks than TCP: those that Open MPI itself uses, and those of UCX that hier does not
// take.
void test_networks_beside_tcp(void**)
{
    const std::vector<NetworkDevice> ethernet = {{"tcp", "eth0"}, {"tcp", "lo"}};
    const std::vector<NetworkDevice> efa = {
        {"srd", "rdmap0:1"}, {"ud_verbs", "rdmap0:1"}, {"tcp", "eth0"}};
    assert_string_equal("", why_not_tcp(ethernet, "ob1").c_str());
    assert_string_equal("", why_not_tcp(ethernet, "ucx").c_str());
    assert_string_equal("", why_not_tcp(ethernet, "").c_str());
    assert_string_equal("", why_not_tcp(efa, "ob1").c_str());
    assert_true(why_not_tcp(ethernet, "cm").find("pml cm") != std::string::npos);
    assert_true(why_not_tcp(efa, "ucx").find("srd on rdmap0:1") != std::string::npos);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_of_ucx),
        cmocka_unit_test(test_networks_beside_tcp),
    };
    return hier::test::run_cases(argc, argv, "network_constraints", tests);
}
