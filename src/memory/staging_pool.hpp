// SPDX-License-Identifier: BSD-3-Clause
// Host memory that calls borrow: staging of buffers, and bounce buffers. All teams and threads of
// the process share it. Devices copy from and to pinned memory without the CPU's help. Pinned
// memory lies on the NUMA node of its device, if that node is known.
//
//                     between calls                          above the budget
//     pinned          kept, as to free it would wait for     not made: pageable memory instead
//                     the application's kernels
//     pageable        kept, the last used first              unmapped after the call
//     sparse          unmapped after the call
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

namespace hier {

class StagingPool {
public:
    static StagingPool& instance();

    struct Lent {
        std::byte* data = nullptr;  // page-aligned; null: no memory, and the cause has been logged
        bool is_pinned = false;
    };
    // At least so many bytes for copies of `device`; -1: of the CPU alone. If nothing can be pinned
    // for the device, the memory is pageable, and copies are slower. To fail instead would be worse,
    // because other ranks may be in the call already.
    Lent borrow(int device, std::size_t bytes);
    // Memory of which a call uses a part at a time. Its pages come when they are written, and go by
    // drop_pages().
    std::byte* borrow_sparse(std::size_t bytes);
    // All pages that have any of these bytes.
    static void drop_pages(std::byte* from, std::size_t bytes);
    // Nobody reads or writes the memory any more. Memory of a failed call is not given back.
    void give_back(const std::byte* data);
    // As an owner that gives back.
    std::shared_ptr<std::byte> borrow_shared(int device, std::size_t bytes, bool& is_pinned);
    // At the end of the process: frees all of it, also what is lent.
    void clear();

private:
    // Does the GPU runtime know the block? Either the runtime has allocated it, or our pages have
    // been registered. Pageable memory belongs to nobody.
    enum class Owner { nobody, runtime, registered };
    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        int device = -1;
        Owner owner = Owner::nobody;
        bool is_counted = false;  // in the budget
        bool is_sparse = false;
        bool is_lent = false;
        bool is_pinned() const { return owner != Owner::nobody; }
    };

    static void free(const Block& block);
    // A block without data: the place of the device is unknown, or there is no memory.
    static Block make_near(int device, std::size_t bytes);
    static Block make_by_runtime(int device, std::size_t bytes);
    static Block make_pages(int device, std::size_t bytes);
    Block* find_free(std::size_t bytes, bool is_pinned);
    Block* make_pinned(int device, std::size_t bytes);
    bool count(std::size_t bytes);
    bool drop_one();

    std::mutex mutex_;
    std::list<Block> blocks_;  // the last used first
};

}  // namespace hier
