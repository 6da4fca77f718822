// SPDX-License-Identifier: BSD-3-Clause
#include "csv.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace bench {
namespace {

// RFC 4180: a field with a comma, a quote or a line end is quoted.
std::string quoted(const std::string& field)
{
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
        return field;
    }
    std::string text = "\"";
    for (const char c : field) {
        text += c == '"' ? "\"\"" : std::string(1, c);
    }
    return text + '"';
}

}  // namespace

std::string fixed(double value, int digits)
{
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

std::string known(double value, int digits) { return value > 0.0 ? fixed(value, digits) : ""; }

std::string Csv::open(const std::string& path, const std::string& header)
{
    path_ = path;
    if (path.empty()) {
        return "";
    }
    std::string first;
    const bool is_empty = !std::getline(std::ifstream(path), first);
    if (!is_empty && first != header) {
        return "--csv " + path + ": its first line names other columns; name another file";
    }
    file_.reset(std::fopen(path.c_str(), "a"));
    if (file_ == nullptr) {
        return "--csv " + path + ": " + std::strerror(errno);
    }
    if (is_empty) {
        std::fputs((header + '\n').c_str(), file_.get());
    }
    return "";
}

std::string Csv::add(std::span<const std::string> fields) const
{
    if (file_ == nullptr) {
        return "";
    }
    std::string line;
    for (const std::string& field : fields) {
        line += (&field == &fields.front() ? "" : ",") + quoted(field);
    }
    line += '\n';
    if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) {
        return "--csv " + path_ + ": " + std::strerror(errno);
    }
    return "";
}

}  // namespace bench
