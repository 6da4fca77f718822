// SPDX-License-Identifier: BSD-3-Clause
// What a process writes to its standard error while an object of this class lives.
#pragma once

#include <cstdio>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace hier_test {

class CapturedErrors {
public:
    CapturedErrors() : before_(dup(STDERR_FILENO)), file_(memfd_create("captured errors", 0))
    {
        std::fflush(stderr);
        dup2(file_, STDERR_FILENO);
    }
    ~CapturedErrors() { end(); }
    CapturedErrors(const CapturedErrors&) = delete;
    CapturedErrors& operator=(const CapturedErrors&) = delete;

    // Ends the capture and returns what has been written.
    std::string end()
    {
        if (before_ < 0) {
            return {};
        }
        std::fflush(stderr);
        dup2(before_, STDERR_FILENO);
        close(before_);
        before_ = -1;
        std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
        const ssize_t got = pread(file_, text.data(), text.size(), 0);
        text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        close(file_);
        return text;
    }

private:
    int before_;
    int file_;
};

}  // namespace hier_test
