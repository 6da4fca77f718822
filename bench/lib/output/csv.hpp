// SPDX-License-Identifier: BSD-3-Clause
// CSV rows, appended to a file.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace bench {

// `digits`: behind the point.
[[nodiscard]] std::string fixed(double value, int digits);
// Empty for 0, which stands for "not known".
[[nodiscard]] std::string known(double value, int digits);

class Csv {
public:
    // Both return the reason if they fail. An empty file gets the header, which has no line end. A
    // file with another header is an error.
    [[nodiscard]] std::string open(const std::string& path, const std::string& header);
    [[nodiscard]] std::string add(std::span<const std::string> fields) const;

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;  // nullptr: no file was asked for
};

}  // namespace bench
