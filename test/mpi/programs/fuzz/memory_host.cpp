// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <algorithm>

namespace hier_test::fuzz {

namespace {

class HostBlock : public Block {
public:
    explicit HostBlock(std::size_t bytes) : content_(bytes) {}

    const char* kind() const override { return name_of_kind(0); }
    unsigned char* data() override { return content_.data(); }
    std::size_t bytes() const override { return content_.size(); }
    void write(std::size_t offset, const Content& content) override
    {
        std::copy(content.begin(), content.end(), at(offset));
    }
    Content read(std::size_t offset, std::size_t bytes) override
    {
        return Content(at(offset), at(offset + bytes));
    }

private:
    Content::iterator at(std::size_t offset)
    {
        return content_.begin() + static_cast<std::ptrdiff_t>(offset);
    }
    Content content_;
};

}  // namespace

const char* const prefix_of_programs = "";

void choose_device(int) {}

std::unique_ptr<Block> allocate(unsigned, std::size_t bytes)
{
    return std::make_unique<HostBlock>(bytes);
}

unsigned draw_kind(Random&) { return 0; }

unsigned number_of_kinds() { return 1; }

const char* name_of_kind(unsigned) { return "host"; }

std::vector<DeviceFigure> device_figures() { return {}; }
double kib_of_runtime() { return 0; }

void close_mappings_of_freed(MPI_Comm /*communicator*/) {}

}  // namespace hier_test::fuzz
