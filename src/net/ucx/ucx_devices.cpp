// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/ucx_devices.hpp"

#include <uct/api/uct.h>

#include "base/error.hpp"
#include "topology/discovery.hpp"
#include "topology/locality.hpp"

namespace hier {
namespace {

struct Resource {
    std::string transport;
    std::string device;
    uct_device_type_t type;
};

void append_resources(uct_component_h component, const char* memory_domain,
                      std::vector<Resource>& out)
{
    uct_md_config_t* config = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
    uct_md_h md = nullptr;
    const ucs_status_t status = uct_md_open(component, memory_domain, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) return;  // a component without its device is no error
    uct_tl_resource_desc_t* resources = nullptr;
    unsigned count = 0;
    if (uct_md_query_tl_resources(md, &resources, &count) == UCS_OK) {
        for (unsigned i = 0; i < count; i++)
            out.push_back({resources[i].tl_name, resources[i].dev_name, resources[i].dev_type});
        uct_release_tl_resource_list(resources);
    }
    uct_md_close(md);
}

void append_component(uct_component_h component, std::vector<Resource>& out)
{
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(component, &attributes) != UCS_OK || attributes.md_resource_count == 0)
        return;
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (uct_component_query(component, &attributes) != UCS_OK) return;
    for (const auto& domain : domains) append_resources(component, domain.md_name, out);
}

std::vector<Resource> all_resources()
{
    uct_component_h* components = nullptr;
    unsigned count = 0;
    const ucs_status_t status = uct_query_components(&components, &count);
    if (status != UCS_OK)
        throw SetupError(format("UCX cannot list its components: %s", ucs_status_string(status)));
    std::vector<Resource> out;
    for (unsigned i = 0; i < count; i++) append_component(components[i], out);
    uct_release_component_list(components);
    return out;
}

}  // namespace

std::vector<NetworkDevice> network_devices()
{
    std::vector<NetworkDevice> out;
    for (const Resource& r : all_resources()) {
        if (r.type == UCT_DEVICE_TYPE_NET) out.push_back({r.transport, r.device});
    }
    for (NetworkDevice& d : out) {
        d.link = link_of_network_device(d.name);
        if (!writes_by_rdma(d)) continue;
        const std::string without_port = d.name.substr(0, d.name.find(':'));
        d.position = position_of_pci(pci_of_network_device(without_port));
    }
    return out;
}

std::string memory_transports()
{
    std::string out;
    for (const Resource& r : all_resources()) {
        if (r.transport != "cuda_copy" && r.transport != "rocm_copy") continue;
        const bool is_known = (',' + out + ',').find(',' + r.transport + ',') != std::string::npos;
        if (!is_known) out += (out.empty() ? "" : ",") + r.transport;
    }
    return out;
}

}  // namespace hier
